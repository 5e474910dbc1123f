package io.onceflux.benchmarks.variant;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.services.KafkaService;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import java.time.Duration;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Every way for a moment, on real servers: what is fast and wrong must not get into a report. */
class VariantsTest {

    private static final Duration MOMENT = Duration.ofMillis(300);

    @ParameterizedTest
    @ValueSource(
            strings = {
                "jdbc",
                "jdbc/without-claim",
                "by-hand-per-message",
                "by-hand-grouped/batch=20",
                "by-hand-grouped/batch=20/without-claim",
                "by-hand-set-based",
                "per-message",
                "per-message/duplicates=50",
                "per-message/without-claim",
                "per-message/old-claims=100000",
                "grouped",
                "grouped/duplicates=50",
                "grouped/customers=1",
                "per-message/customers=10/unordered",
                "set-based",
                "per-message/duplicates=99/recent-keys",
                "pipeline-per-message",
                "pipeline",
                "claims/rows=1000",
                "spring-amqp/duplicates=50",
                "rabbit-bare",
                "rabbit-per-message/duplicates=50",
                "rabbit-grouped/duplicates=50",
                "rabbit-set-based",
                "kafka-per-message/duplicates=50",
                "kafka-grouped",
                "kafka-set-based",
                "kafka-fenced"
            })
    void theBooksAreExactAfterTwoTurns(String what) {
        Case one = Case.parse(what);
        try (Variant variant = Variants.open(one, site(one))) {
            long messages = 0;
            for (int turn = 0; turn < 2 || (messages == 0 && turn < 20); turn++) { // Cold, a turn may be too short.
                variant.prepare(MOMENT);
                messages += variant.run(MOMENT);
                variant.rest();
            }
            assertThat(messages).isPositive();
            variant.audit();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"jdbc", "per-message"})
    void atAPaceMessagesComeWhenTheyAreDue(String what) {
        Case one = Case.parse(what);
        try (Variant variant = Variants.open(one, site(one))) {
            variant.pace(40);
            long messages = variant.run(Duration.ofSeconds(1));
            variant.rest();
            Histogram latencies = variant.latencies();
            assertThat(messages).isBetween(0L, 41L);
            assertThat(latencies.getTotalCount()).isBetween(messages, 49L); // With those under way at the end.
            assertThat(latencies.getMinNonZeroValue()).isPositive();
            variant.audit();
        }
    }

    @Test
    void aMissingEffectIsFound() {
        Case jdbc = Case.parse("jdbc");
        Site site = site(jdbc);
        try (Variant variant = Variants.open(jdbc, site)) {
            variant.run(MOMENT);
            variant.rest();
            Sql.run(site, "DELETE FROM point_ledger WHERE entry_id = 1");
            assertThatThrownBy(variant::audit).hasMessageContaining("rows in the ledger");
        }
    }

    @Test
    void aDoubledEffectIsFound() {
        Case jdbc = Case.parse("jdbc");
        Site site = site(jdbc);
        try (Variant variant = Variants.open(jdbc, site)) {
            variant.run(MOMENT);
            variant.rest();
            Sql.run(
                    site,
                    "UPDATE point_ledger SET order_id = (SELECT order_id FROM point_ledger WHERE entry_id = 2) WHERE entry_id = 1");
            assertThatThrownBy(variant::audit).hasMessageContaining("different orders");
        }
    }

    private static Site site(Case what) {
        if (what.way().isPipelineAlone()) {
            return new Site("", 0, "", "", "", "", "");
        }
        PostgresService postgres = PostgresService.shared();
        return new Site(
                postgres.host(),
                postgres.port(),
                postgres.user(),
                postgres.password(),
                postgres.newDatabase(),
                what.way().needsRabbit() ? RabbitService.shared().uri() : "",
                what.way().needsKafka() ? KafkaService.shared().bootstrap() : "");
    }
}
