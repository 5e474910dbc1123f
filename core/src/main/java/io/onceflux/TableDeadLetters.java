package io.onceflux;

import io.onceflux.postgres.DeadLetterRow;
import io.onceflux.postgres.DeadLetterTable;
import io.onceflux.postgres.UnfitTableException;
import io.r2dbc.postgresql.api.PostgresqlException;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.R2dbcException;
import java.time.Clock;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.retry.Retry;

/** The dead letters of one consumer in a {@link DeadLetterTable}: put there before their source is told, read, renewed and removed. */
final class TableDeadLetters {

    /** What is read at once, so that large bodies do not fill the memory; a larger one is read alone. */
    private static final long PAGE_BYTES = 1 << 20;

    private static final String LONGEST_KIND = FailureKind.INFRASTRUCTURE.name();
    private static final int LONG = 500;

    private final DeadLetterTable table;
    private final Transactions transactions;
    private final Settings settings;

    TableDeadLetters(DeadLetterTable table, Transactions transactions, Settings settings) {
        this.table = table;
        this.transactions = transactions;
        this.settings = settings;
    }

    /** Looks whether a crash empties the table; does once, and rolls back, all that will have to be done with it. */
    Mono<Void> verify() {
        return transactions.inRolledBackTransaction(connection -> table.requireLogged(connection)
                .onErrorMap(
                        UnfitTableException.class, e -> new InvalidSetupException(String.valueOf(e.getMessage()), e))
                .then(Mono.defer(() -> trial(connection)))
                .onErrorMap(this::isAboutTheTable, this::unfit));
    }

    private Mono<Void> trial(Connection connection) {
        String key = (Probe.nobodysKey(settings).id() + "x".repeat(MessageKey.MAX_ID_BYTES))
                .substring(0, MessageKey.MAX_ID_BYTES);
        return table.store(connection, trialRow(key, 1))
                .then(Mono.defer(() -> table.store(connection, trialRow(key, 2))))
                .flatMap(number -> read(connection, number)
                        .flatMap(row -> must(table.renew(connection, row), "be renewed"))
                        .then(Mono.defer(() -> read(connection, number)))
                        .flatMap(row -> must(table.remove(connection, row), "be removed")))
                .then();
    }

    private Mono<DeadLetterRow> read(Connection connection, long number) {
        return table.page(connection, settings.consumer(), number - 1, number, PAGE_BYTES)
                .flatMap(rows -> rows.isEmpty() ? must(Mono.just(false), "be read") : Mono.just(rows.get(0)));
    }

    private static <R> Mono<R> must(Mono<Boolean> done, String what) {
        return done.flatMap(was -> was
                ? Mono.empty()
                : Mono.error(() -> new IllegalStateException(
                        "a row that was stored cannot %s: a policy, trigger or rule keeps it away".formatted(what))));
    }

    /** As large as a real one may be, but for the body, whose size no column of bytes limits. */
    private DeadLetterRow trialRow(String key, int body) {
        return new DeadLetterRow(
                0,
                0,
                settings.consumer(),
                key,
                "é".repeat(LONG),
                "é".repeat(LONG),
                LONGEST_KIND,
                "é".repeat(Failure.MAX_REASON),
                "XX000",
                Integer.MAX_VALUE,
                Clock.systemUTC().instant(),
                Map.of("trial", "é".repeat(Failure.MAX_REASON)),
                new byte[] {(byte) body});
    }

    private boolean isAboutTheTable(Throwable error) {
        if (error instanceof InvalidSetupException) {
            return false; // It says what to change already.
        }
        R2dbcException fromDatabase = Causes.find(error, R2dbcException.class);
        FailureKind kind = fromDatabase == null ? null : SqlStates.kindOf(fromDatabase);
        return kind != FailureKind.INFRASTRUCTURE
                && (kind != FailureKind.CONFLICT || SqlStates.STALE_PLAN.equals(SqlStates.stateOf(error)));
    }

    private InvalidSetupException unfit(Throwable error) {
        String state = SqlStates.stateOf(error);
        if (SqlStates.NO_UNIQUE_INDEX.equals(state)) {
            return new InvalidSetupException(
                    ("Table %s has no unique index on exactly (consumer, message_key, sha256(body)), so a dead letter that comes again"
                                    + " could not be told from another. Add one: %s")
                            .formatted(table, table.createIndexSql()),
                    error);
        }
        if (SqlStates.NOT_UNIQUE.equals(state)) {
            return new InvalidSetupException(
                    ("Table %s cannot keep two dead letters that have one key and different bodies: it has another unique index or"
                                    + " constraint than that on (consumer, message_key, sha256(body)). Drop it: %s")
                            .formatted(table, constraintOf(error)),
                    error);
        }
        return new InvalidSetupException(
                ("Table %s cannot keep dead letters (%s%s). It must be as this makes it, and the role needs SELECT, INSERT, UPDATE"
                                + " and DELETE on it: %s")
                        .formatted(
                                table,
                                state == null ? "" : state + ": ",
                                Causes.messageOf(Causes.root(error)),
                                table.createSql().strip()),
                error);
    }

    private static String constraintOf(Throwable error) {
        return Causes.find(error, R2dbcException.class) instanceof PostgresqlException fromServer
                ? fromServer.getErrorDetails().getConstraintName().orElse("its name is not known")
                : "its name is not known";
    }

    /** The body that can be stored; null if the delivery has none, or none to be had. */
    static byte @Nullable [] bodyOf(Delivery<?> delivery) {
        try {
            return delivery.body();
        } catch (Throwable e) { // Its source may keep it all the same.
            return null;
        }
    }

    /** Completes when it is committed. */
    Mono<Void> store(Delivery<?> delivery, byte[] body, Failure failure) {
        return Mono.defer(() -> {
            DeadLetterRow row = new DeadLetterRow(
                    0,
                    0,
                    settings.consumer(),
                    failure.messageKey() == null ? null : failure.messageKey().id(),
                    usableId(delivery),
                    told("the origin", delivery::origin),
                    failure.kind().name(),
                    storable(failure.reason()),
                    stateOf(failure),
                    failure.attempts(),
                    failure.time(),
                    headersOf(delivery, body),
                    body);
            return transactions
                    .inTransaction(connection -> table.store(connection, row))
                    .then();
        });
    }

    /** The id that the replayed message is to have; none, if it could never be a key. */
    private @Nullable String usableId(Delivery<?> delivery) {
        try {
            String id = delivery.id();
            if (id != null) {
                MessageKey.refuseUnusable(id);
            }
            return id;
        } catch (Throwable e) { // That is why it became a dead letter.
            return null;
        }
    }

    private static Map<String, String> headersOf(Delivery<?> delivery, byte[] body) {
        Map<String, String> storable = new LinkedHashMap<>();
        try {
            delivery.headers()
                    .forEach((name, value) ->
                            storable.put(storable(String.valueOf(name)), storable(String.valueOf(value))));
        } catch (Throwable e) {
            storable.put("onceflux-note", storable("the headers could not be told: " + Causes.describe(e)));
        }
        if (body.length > 0) {
            storable.remove(Delivery.NO_BODY); // A sender's.
        }
        return storable;
    }

    /** What a delivery of the user's own does not tell must not keep its dead letter from being stored. */
    private static String told(String what, Supplier<@Nullable String> part) {
        try {
            return storable(String.valueOf(part.get()));
        } catch (Throwable e) {
            return storable(what + " could not be told: " + Causes.describe(e));
        }
    }

    /** PostgreSQL's text holds no NUL, and what a person reads must not keep a dead letter from being stored. */
    private static String storable(String text) {
        return text.replace('\0', '\uFFFD');
    }

    private static @Nullable String stateOf(Failure failure) {
        return failure.sqlState() == null ? null : storable(failure.sqlState());
    }

    /** Those that are there when it is subscribed, the oldest first; read as they are asked for. */
    Flux<DeadLetterRow> rows() {
        return transactions
                .withoutTransaction(connection -> table.last(connection, settings.consumer()))
                .timeout(settings.timeLimit())
                .flatMapMany(this::upTo);
    }

    private Flux<DeadLetterRow> upTo(long last) {
        AtomicLong after = new AtomicLong();
        return Flux.<Mono<List<DeadLetterRow>>>generate(sink -> {
                    if (after.get() < last) {
                        sink.next(page(after, last));
                    } else {
                        sink.complete();
                    }
                })
                .concatMap(page -> page, 0)
                .concatMap(Flux::fromIterable, 0);
    }

    private Mono<List<DeadLetterRow>> page(AtomicLong after, long last) {
        return transactions
                .withoutTransaction(
                        connection -> table.page(connection, settings.consumer(), after.get(), last, PAGE_BYTES))
                .timeout(settings.timeLimit())
                .doOnNext(rows -> after.set(
                        rows.isEmpty() ? last : rows.get(rows.size() - 1).number()));
    }

    /** False if it has been renewed or removed since it was read. */
    Mono<Boolean> remove(DeadLetterRow row) {
        return changed(connection -> table.remove(connection, row));
    }

    /** Writes why it failed again; false if it has been renewed or removed since it was read. */
    Mono<Boolean> renew(DeadLetterRow row, Failure failure) {
        DeadLetterRow renewed = new DeadLetterRow(
                row.number(),
                row.times(),
                row.consumer(),
                row.messageKey(),
                row.messageId(),
                row.origin(),
                failure.kind().name(),
                storable(failure.reason()),
                stateOf(failure),
                failure.attempts(),
                failure.time(),
                row.headers(),
                row.body());
        return changed(connection -> table.renew(connection, renewed));
    }

    /** Two replays, or a replay and today's messages, may meet here too. */
    private Mono<Boolean> changed(Function<Connection, Mono<Boolean>> change) {
        return transactions
                .inTransaction(change::apply)
                .retryWhen(Retry.from(failures -> failures.concatMap(failure -> isConflict(failure.failure())
                        ? Mono.delay(settings.failurePolicy()
                                .backoff(FailureKind.CONFLICT)
                                .after((int) failure.totalRetries() + 1))
                        : Mono.error(failure.failure()))))
                .timeout(settings.settleLimit());
    }

    private static boolean isConflict(Throwable error) {
        R2dbcException fromDatabase = Causes.find(error, R2dbcException.class);
        return fromDatabase != null && SqlStates.kindOf(fromDatabase) == FailureKind.CONFLICT;
    }
}
