package io.onceflux;

import static io.onceflux.Consumers.policy;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.postgres.VersionGuard;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Of the versions of a row the newest stays, in whatever order and however often they arrive. */
class VersionGuardTest {

    private static final VersionGuard PROFILES =
            VersionGuard.of("profiles", "customer_id").withColumns("name");

    record Profile(String customer, long version, String name) {
        static Profile of(long version) {
            return new Profile("c", version, "name " + version);
        }
    }

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);

    @BeforeEach
    void createTable() {
        database.run("CREATE TABLE profiles (customer_id text PRIMARY KEY, version bigint, name text NOT NULL)");
    }

    @AfterEach
    void dropTable() {
        database.run("DROP TABLE profiles");
    }

    private static Mono<Long> write(Profile profile, DatabaseClient db) {
        return db.sql(PROFILES.upsertSql())
                .bind("customer_id", profile.customer())
                .bind("version", profile.version())
                .bind("name", profile.name())
                .fetch()
                .rowsUpdated();
    }

    /** Each message has the id of its row, not of its own: what comes again of a row is no copy. */
    private List<Outcome> run(int lanes, int maxBatch, long... versions) {
        IdempotentConsumer<Profile> consumer = IdempotentConsumer.<Profile>named("profiles")
                .identifiedBy(Profile::customer)
                .orderedBy(Profile::version)
                .naturalKey(PROFILES.key())
                .conditionalEffect(VersionGuardTest::write, NoRows.STALE)
                .lanes(lanes)
                .maxBatch(maxBatch)
                .failurePolicy(policy().build())
                .build(pool);
        return Objects.requireNonNull(Flux.fromStream(java.util.Arrays.stream(versions)
                        .<Delivery<Profile>>mapToObj(version -> new TestDelivery<>("" + version, Profile.of(version))))
                .transform(consumer)
                .collectList()
                .block(Duration.ofSeconds(60)));
    }

    private List<String> profiles() {
        return database.texts("SELECT concat(version, ' ', name) FROM profiles");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void theNewestOfSeveralInParallelStays(int maxBatch) {
        List<Outcome> outcomes = run(4, maxBatch, 1, 3, 2, 3);

        assertThat(profiles()).containsExactly("3 name 3");
        assertThat(outcomes).hasSize(4);
        assertThat(outcomes)
                .filteredOn(outcome -> !(outcome instanceof Outcome.Applied))
                .isNotEmpty()
                .allMatch(Outcome.Stale.class::isInstance);
        assertThat(database.claims()).isZero();
    }

    @Test
    void oneThatWasOvertakenIsStale() {
        assertThat(run(1, 1, 2, 1, 2, 3))
                .hasExactlyElementsOfTypes(
                        Outcome.Applied.class, Outcome.Stale.class, Outcome.Stale.class, Outcome.Applied.class);
        assertThat(profiles()).containsExactly("3 name 3");
    }

    @Test
    void aStoredNullIsOlderThanAnyVersion() {
        database.run("INSERT INTO profiles VALUES ('c', NULL, 'from before')");

        assertThat(run(1, 1, 5)).hasExactlyElementsOfTypes(Outcome.Applied.class);
        assertThat(profiles()).containsExactly("5 name 5");
    }

    @Test
    void aVersionThatIsFinerThanTheColumnIsRefused() {
        Instant instant = Instant.parse("2026-11-30T12:00:00.000001Z");

        assertThat(VersionGuard.version(instant).toInstant()).isEqualTo(instant);
        assertThatThrownBy(() -> VersionGuard.version(instant.plusNanos(300)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("2026-11-30T12:00:00.000001300Z")
                .hasMessageContaining("bigint of nanoseconds");
    }

    @Test
    void theStatementQuotesItsNames() {
        assertThat(VersionGuard.of("Profiles", "Id", "region")
                        .inSchema("crm")
                        .versionedBy("Rev")
                        .withColumns("name")
                        .upsertSql())
                .isEqualTo("""
                        INSERT INTO "crm"."Profiles" AS stored ("Id", "region", "Rev", "name") VALUES (:Id, :region, :Rev, :name)
                        ON CONFLICT ("Id", "region") DO UPDATE SET "Rev" = EXCLUDED."Rev", "name" = EXCLUDED."name"
                        WHERE stored."Rev" IS NULL OR stored."Rev" < EXCLUDED."Rev\"""");
    }

    @Test
    void namesThatCannotBeParametersAreRefused() {
        Stream.<Runnable>of(
                        () -> VersionGuard.of("t", "first name"),
                        () -> VersionGuard.of("t", "id").withColumns("a-b"),
                        () -> VersionGuard.of("t", "id").versionedBy(""),
                        () -> VersionGuard.of("t"))
                .forEach(bad -> assertThatThrownBy(bad::run).isInstanceOf(IllegalArgumentException.class));
    }
}
