package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import io.onceflux.postgres.ClaimTable;
import io.onceflux.services.PostgresService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import reactor.core.publisher.Flux;

/** A set-up that cannot keep the promise ends the flux with one sentence, before the source is asked for anything. */
class StartupTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);

    private static String refusal(ConsumerBuilder<Order> builder, ConnectionFactory connections) {
        AtomicLong requested = new AtomicLong();
        AtomicLong subscribed = new AtomicLong();
        Throwable refusal = catchThrowable(() -> Flux.<Delivery<Order>>just(TestDelivery.order("1"))
                .doOnRequest(requested::addAndGet)
                .doOnSubscribe(subscription -> subscribed.incrementAndGet())
                .transform(builder.build(connections))
                .blockLast(Duration.ofSeconds(30)));
        assertThat(refusal).isInstanceOf(InvalidSetupException.class);
        assertThat(requested).as("deliveries that were asked for").hasValue(0);
        assertThat(subscribed).as("subscriptions to the source").hasValue(0);
        return String.valueOf(refusal.getMessage());
    }

    private static ConsumerBuilder<Order> claimingIn(ClaimTable table) {
        return orders(Order::apply).claimTable(table);
    }

    @Test
    void aPoolOfAsManyConnectionsAsLanesIsTooSmall() {
        assertThat(refusal(orders(Order::apply).lanes(5), database.pool(5)))
                .isEqualTo(
                        "The connection pool holds at most 5 connections, but 5 lanes need 6: one a lane, and one to probe"
                                + " the database. Raise the pool's maxSize or lower lanes.");
    }

    @Test
    void aMissingTableIsNamedWithTheSqlThatCreatesIt() {
        assertThat(refusal(claimingIn(ClaimTable.named("nowhere")), pool))
                .startsWith("Table nowhere does not exist in this database, or is not in the search path. Create it:"
                        + " CREATE TABLE IF NOT EXISTS \"nowhere\" (");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            no_index    | (consumer text, message_key text, processed_at timestamptz)  |  | has no unique index on exactly ("consumer", "message_key"), so the same message could be applied twice. Add one: CREATE UNIQUE INDEX ON "no_index" ("consumer", "message_key");
            too_wide    | (consumer text, message_key text, processed_at timestamptz, PRIMARY KEY (consumer, message_key, processed_at))  |  | has no unique index on exactly
            too_narrow  | (consumer text, message_key text UNIQUE, processed_at timestamptz)  |  | has no unique index on exactly
            partial     | (consumer text, message_key text, processed_at timestamptz) | CREATE UNIQUE INDEX ON partial (consumer, message_key) WHERE consumer <> 'x' | on ("consumer", "message_key") is partial, deferrable or invalid; it must be none of these.
            late_check  | (consumer text, message_key text, processed_at timestamptz, UNIQUE (consumer, message_key) DEFERRABLE) |  | is partial, deferrable or invalid
            on_lower    | (consumer text, message_key text, processed_at timestamptz) | CREATE UNIQUE INDEX ON on_lower (consumer, lower(message_key)) | has no unique index on exactly
            fuzzy       | (consumer text, message_key text COLLATE ignore_case, processed_at timestamptz, PRIMARY KEY (consumer, message_key)) |  | has a nondeterministic collation, for which different ids are equal; use COLLATE "C".
            more        | (consumer text, message_key text, processed_at timestamptz, tenant text NOT NULL, PRIMARY KEY (consumer, message_key)) |  | Table more has NOT NULL columns without a default that a claim does not fill: [tenant]. Give them a default.
            citext_like | (consumer text, message_key bigint, processed_at timestamptz, PRIMARY KEY (consumer, message_key)) |  | Column message_key of table citext_like has type bigint, which does not compare ids byte by byte; use text, varchar or uuid.
            padded      | (consumer char(20), message_key text, processed_at timestamptz, PRIMARY KEY (consumer, message_key)) |  | Column consumer of table padded has type character, which does not compare ids byte by byte; use text, varchar.
            no_column   | (consumer text, id text, processed_at timestamptz, PRIMARY KEY (consumer, id)) |  | Table no_column has no column message_key; it has [consumer, id, processed_at]. Name the right one on the ClaimTable.
            no_time     | (consumer text, message_key text, PRIMARY KEY (consumer, message_key)) |  | Table no_time has no column processed_at
            """)
    void aTableThatDoesNotMakeClaimsUniqueIsRefused(String table, String columns, String then, String sentence) {
        if (table.equals("fuzzy")) {
            database.run("CREATE COLLATION ignore_case"
                    + " (provider = icu, locale = 'und-u-ks-level2', deterministic = false)");
        }
        database.run("CREATE TABLE " + table + " " + columns + ";" + (then == null ? "" : then));
        assertThat(refusal(claimingIn(ClaimTable.named(table)), pool)).contains(sentence);
    }

    @Test
    void aTableWhoseTriggerPutsTheRowElsewhereIsRefused() {
        database.run("""
                CREATE TABLE routed (LIKE processed_messages INCLUDING ALL);
                CREATE TABLE routed_2026 () INHERITS (routed);
                CREATE FUNCTION route() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN INSERT INTO routed_2026 VALUES (NEW.*); RETURN NULL; END $$;
                CREATE TRIGGER route BEFORE INSERT ON routed FOR EACH ROW EXECUTE FUNCTION route()""");
        assertThat(refusal(claimingIn(ClaimTable.named("routed")), pool))
                .contains("A trial claim in routed was not stored", "trigger or rule");
    }

    @Test
    void anUnloggedTableIsRefused() {
        database.run("CREATE UNLOGGED TABLE unlogged (LIKE processed_messages INCLUDING ALL)");
        assertThat(refusal(claimingIn(ClaimTable.named("unlogged")), pool))
                .isEqualTo(
                        "Table unlogged is UNLOGGED: a crash of PostgreSQL empties it, and every message could be applied"
                                + " again. Make it permanent: ALTER TABLE \"unlogged\" SET LOGGED;");
    }

    @Test
    void aViewIsRefused() {
        database.run("CREATE VIEW a_view AS SELECT * FROM processed_messages");
        assertThat(refusal(claimingIn(ClaimTable.named("a_view")), pool))
                .isEqualTo("a_view is not a table; claims need one of their own.");
    }

    @Test
    void aRoleThatMayNotWriteClaimsIsRefusedWithTheGrantThatItNeeds() {
        database.run("CREATE ROLE \"poor Role\" LOGIN PASSWORD 'secret'");
        try {
            ConnectionFactory poor = new PostgresqlConnectionFactory(database.configuration()
                    .username("poor Role")
                    .password("secret")
                    .build());
            assertThat(refusal(orders(Order::apply), poor))
                    .isEqualTo("Role poor Role may not write claims. Allow it:"
                            + " GRANT SELECT, INSERT ON \"processed_messages\" TO \"poor Role\";");
            database.run("GRANT SELECT, INSERT ON processed_messages TO \"poor Role\"");
            assertThat(orders((order, db) -> db.sql("SELECT 1").then())
                            .build(poor)
                            .process(TestDelivery.order("1"))
                            .block())
                    .isInstanceOf(Outcome.Applied.class);
        } finally {
            database.run("DROP OWNED BY \"poor Role\"; DROP ROLE \"poor Role\"");
        }
    }

    @Test
    void aRefusedLoginIsNotWaitedFor() {
        assertThat(refusal(
                        orders(Order::apply),
                        new PostgresqlConnectionFactory(database.configuration()
                                .username("nobody-has-this-role")
                                .build())))
                .startsWith("PostgreSQL refuses the login (28")
                .contains("check user, password and database of the ConnectionFactory");
        assertThat(refusal(
                        orders(Order::apply),
                        new PostgresqlConnectionFactory(database.configuration()
                                .database("no_such_database")
                                .build())))
                .startsWith("PostgreSQL refuses the login (3D000)");
    }

    @Test
    void aDatabaseThatIsAwayIsWaitedForUntilTheStartLimit() {
        ConnectionFactory nobodyListens = new PostgresqlConnectionFactory(
                database.configuration().host("127.0.0.1").port(1).build());
        long start = System.nanoTime();
        assertThat(refusal(orders(Order::apply).startLimit(Duration.ofSeconds(1)), nobodyListens))
                .startsWith("PostgreSQL could not be reached for 1 s: check host and port of the ConnectionFactory, and"
                        + " whether the server runs. It said:");
        assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(10));
    }

    @Test
    void aDatabaseThatComesLateIsFoundAndTheMessagesAreApplied() {
        try (PostgresService late = PostgresService.start();
                Database ofLate = Database.on(late)) {
            late.stop();
            RecordingListener listener = new RecordingListener();
            TestDelivery<Order> delivery = TestDelivery.order("1");
            var outcome = start(orders(Order::apply).listener(listener).build(ofLate.pool(5)), List.of(delivery));
            await().until(() -> listener.held.contains(FailureKind.INFRASTRUCTURE));
            late.restart();

            await().atMost(Duration.ofSeconds(30)).until(outcome::isDone);
            assertThat(outcome.join()).hasExactlyElementsOfTypes(Outcome.Applied.class);
            ofLate.assertAppliedOnce(1);
        }
    }

    @Test
    void aRefusedStartIsTriedAgainByTheNextSubscription() {
        IdempotentConsumer<Order> consumer =
                claimingIn(ClaimTable.named("later")).build(pool);
        assertThat(catchThrowable(() -> run(consumer, TestDelivery.order("1"))))
                .isInstanceOf(InvalidSetupException.class);
        ClaimTable.named("later").create(pool).block();
        assertThat(run(consumer, TestDelivery.order("1"))).isInstanceOf(Outcome.Applied.class);
    }

    @Test
    void synchronousCommitThatIsOffIsWarnedOf() {
        RecordingListener listener = new RecordingListener();
        ConnectionFactory fast = new PostgresqlConnectionFactory(database.configuration()
                .options(Map.of("synchronous_commit", "off"))
                .build());
        run(orders(Order::apply).listener(listener).build(fast), TestDelivery.order("warned"));
        assertThat(listener.warnings)
                .singleElement()
                .asString()
                .startsWith("synchronous_commit is off: a crash of PostgreSQL can lose effects");
    }
}
