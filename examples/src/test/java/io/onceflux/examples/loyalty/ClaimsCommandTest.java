package io.onceflux.examples.loyalty;

import static io.onceflux.examples.loyalty.Shop.LIMIT;
import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Outcome;
import io.onceflux.services.PostgresService;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactory;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

class ClaimsCommandTest {

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();
    private final PostgresService postgres = PostgresService.shared();
    private final ConnectionFactory database = ConnectionFactories.get(postgres.r2dbcUrl(postgres.newDatabase()));
    private final IdempotentConsumer<String> loyalty = IdempotentConsumer.<String>named("loyalty")
            .identifiedBy(order -> "order-completed:" + order)
            .lanes(1)
            .effect((order, db) -> Mono.empty())
            .build(database);

    @BeforeEach
    void claimThree() {
        LoyaltySchema.create(database).block(LIMIT);
        credit("A-1", "A-2", "B-1");
    }

    private List<Outcome> credit(String... orders) {
        return Flux.fromArray(orders)
                .map(order -> Delivery.of(null, order))
                .transform(loyalty)
                .collectList()
                .blockOptional(LIMIT)
                .orElseThrow();
    }

    private int execute(String... args) {
        out.getBuffer().setLength(0);
        err.getBuffer().setLength(0);
        return ClaimsCommand.commandLine(database)
                .setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(args);
    }

    @Test
    void whatIsClaimedIsListedAndFound() {
        assertThat(execute("list")).isZero();
        assertThat(out.toString().lines()).hasSize(3).last().asString().endsWith("order-completed:B-1");
        assertThat(execute("list", "--prefix", "order-completed:A", "--limit", "1"))
                .isZero();
        assertThat(out.toString().lines()).singleElement().asString().endsWith("order-completed:A-1");
        assertThat(execute("find", "order-completed:A-2")).isZero();
        assertThat(execute("find", "order-completed:Z")).isEqualTo(1);
        assertThat(out.toString()).contains("order-completed:Z is not claimed");
        assertThat(execute("size")).isZero();
        assertThat(out.toString()).contains("the oldest is of 2");
    }

    @Test
    void whatIsForgottenIsCreditedAgainAndWrittenDown() {
        assertThat(execute("forget", "order-completed:A-1")).isEqualTo(2);
        assertThat(err.toString()).contains("--who");
        assertThat(execute("forget", "order-completed:A-1", "--who", "ops", "--why", "ticket 7"))
                .isZero();
        assertThat(execute("forget", "order-completed:A-1", "--who", "ops", "--why", "ticket 7"))
                .isEqualTo(1);

        assertThat(credit("A-1")).hasExactlyElementsOfTypes(Outcome.Applied.class);
        assertThat(DatabaseClient.create(database)
                        .sql("SELECT reason FROM processed_messages_forgotten WHERE forgotten_by = 'ops'")
                        .map(row -> String.valueOf(row.get(0, String.class)))
                        .all()
                        .collectList()
                        .block(LIMIT))
                .containsExactly("ticket 7");
    }

    /** A long key is kept as its hash, which is not to be hashed again. */
    @Test
    void aLongKeyIsFoundAndForgottenByItselfAndAsItIsListed() {
        String one = "A-" + "1".repeat(300);
        String two = "A-" + "2".repeat(300);
        credit(one, two);
        assertThat(execute("find", "order-completed:" + one)).isZero();
        String listed = out.toString().strip().replaceAll(".* ", "");
        assertThat(listed).matches("sha256:[0-9a-f]{64}");
        assertThat(execute("list")).isZero();
        assertThat(out.toString()).contains(listed);
        assertThat(execute("list", "--prefix", listed.substring(0, 20))).isZero();
        assertThat(out.toString().strip()).endsWith(listed);

        assertThat(execute("find", listed)).isZero();
        assertThat(out.toString()).contains(listed);
        assertThat(execute("forget", listed, "--who", "ops", "--why", "ticket 8"))
                .isZero();
        assertThat(execute("forget", "order-completed:" + two, "--who", "ops", "--why", "ticket 9"))
                .isZero();
        assertThat(execute("find", listed)).isEqualTo(1);
        assertThat(credit(one, two, "A-1", "A-2", "B-1"))
                .hasExactlyElementsOfTypes(
                        Outcome.Applied.class,
                        Outcome.Applied.class,
                        Outcome.Duplicate.class,
                        Outcome.Duplicate.class,
                        Outcome.Duplicate.class);
    }

    @Test
    void aKeyThatOnlyBeginsLikeAHashIsAKeyLikeAnyOther() {
        IdempotentConsumer<String> literal = IdempotentConsumer.<String>named("loyalty")
                .identifiedBy(id -> id)
                .lanes(1)
                .effect((id, db) -> Mono.empty())
                .build(database);
        assertThat(literal.process(Delivery.of(null, "sha256:A-1")).block(LIMIT))
                .isInstanceOf(Outcome.Applied.class);
        assertThat(execute("find", "sha256:A-1")).isZero();
        assertThat(execute("find", "sha256:A-2")).isEqualTo(1);
    }
}
