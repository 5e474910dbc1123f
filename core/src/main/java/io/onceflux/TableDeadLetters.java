package io.onceflux;

import static io.onceflux.Require.positive;

import io.onceflux.postgres.DeadLetterRow;
import io.onceflux.postgres.DeadLetterTable;
import io.r2dbc.spi.R2dbcBadGrammarException;
import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.R2dbcPermissionDeniedException;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Dead letters in a {@link DeadLetterTable}: stored before their source is told, and handled from there again. */
final class TableDeadLetters {

    private static final int PAGE = 100;

    private final DeadLetterTable table;
    private final Transactions transactions;
    private final String consumer;

    TableDeadLetters(DeadLetterTable table, Transactions transactions, String consumer) {
        this.table = table;
        this.transactions = transactions;
        this.consumer = consumer;
    }

    /** Does once, and rolls back, all that will have to be done with the table. */
    Mono<Void> verify() {
        DeadLetterRow trial = new DeadLetterRow(
                0, 0, consumer, null, null, "", "", "", null, 0, Instant.EPOCH, Map.of(), new byte[0]);
        return transactions
                .inRolledBackTransaction(connection -> table.store(connection, trial)
                        .then(table.last(connection, consumer))
                        .flatMap(number -> table.page(connection, consumer, number - 1, 1))
                        .flatMap(rows -> table.remove(connection, rows.get(0))))
                .onErrorMap(R2dbcBadGrammarException.class, this::unfit)
                .onErrorMap(R2dbcPermissionDeniedException.class, this::unfit);
    }

    private InvalidSetupException unfit(R2dbcException error) {
        return new InvalidSetupException(
                ("Table %s cannot keep dead letters (%s: %s). It must be as this makes it, and the role needs SELECT, INSERT, UPDATE"
                                + " and DELETE on it: %s")
                        .formatted(
                                table,
                                error.getSqlState(),
                                error.getMessage(),
                                table.createSql().strip()),
                error);
    }

    /** Completes when it is committed. */
    Mono<Void> store(Delivery<?> delivery, byte[] body, Failure failure) {
        return Mono.defer(() -> {
            DeadLetterRow row = new DeadLetterRow(
                    0,
                    0,
                    consumer,
                    failure.messageKey() == null ? null : failure.messageKey().id(),
                    usableId(delivery),
                    storable(delivery.origin()),
                    failure.kind().name(),
                    storable(failure.reason()),
                    failure.sqlState(),
                    failure.attempts(),
                    failure.time(),
                    storable(delivery.headers()),
                    body);
            return transactions
                    .inTransaction(connection -> table.store(connection, row).thenReturn(true))
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
        } catch (RuntimeException e) { // That is why it became a dead letter.
            return null;
        }
    }

    private static Map<String, String> storable(Map<String, String> headers) {
        Map<String, String> storable = new LinkedHashMap<>();
        headers.forEach((name, value) -> storable.put(storable(name), storable(value)));
        return storable;
    }

    /** PostgreSQL's text holds no NUL, and what a person reads must not keep a dead letter from being stored. */
    private static String storable(String text) {
        return text.replace('\0', '\uFFFD');
    }

    /** As a user sees them. */
    DeadLetters handledBy(Function<Flux<Delivery<byte[]>>, Flux<Outcome>> handler) {
        return new DeadLetters() {
            @Override
            public Flux<DeadLetter> list() {
                return rows().map(TableDeadLetters::letter);
            }

            @Override
            public Flux<DeadLetter> replay(Predicate<DeadLetter> which, int perSecond) {
                positive("perSecond", perSecond);
                return rows().filter(row -> which.test(letter(row)))
                        .delayElements(Duration.ofNanos(1_000_000_000L / perSecond))
                        .concatMap(row -> again(row, handler), 1);
            }
        };
    }

    /** A row is removed when its delivery is acknowledged, unless a new failure has renewed it before. */
    private Flux<DeadLetter> again(DeadLetterRow row, Function<Flux<Delivery<byte[]>>, Flux<Outcome>> handler) {
        return Flux.<Delivery<byte[]>>just(new StoredDelivery(row))
                .transform(handler)
                .filter(Outcome::isDone)
                .map(outcome -> letter(row));
    }

    /** Those that are there when it is subscribed, page by page. */
    private Flux<DeadLetterRow> rows() {
        return transactions
                .withoutTransaction(connection -> table.last(connection, consumer))
                .flatMapMany(
                        last -> page(0).expand(rows -> rows.size() < PAGE ? Mono.empty() : page(numberOfLast(rows)))
                                .concatMapIterable(rows -> rows, 1)
                                .takeWhile(row -> row.number() <= last));
    }

    private Mono<List<DeadLetterRow>> page(long after) {
        return transactions.withoutTransaction(connection -> table.page(connection, consumer, after, PAGE));
    }

    private static long numberOfLast(List<DeadLetterRow> rows) {
        return rows.get(rows.size() - 1).number();
    }

    private static DeadLetter letter(DeadLetterRow row) {
        return new DeadLetter(
                row.consumer(),
                row.messageKey(),
                FailureKind.valueOf(row.kind()),
                row.reason(),
                row.sqlState(),
                row.attempts(),
                row.failedAt(),
                row.headers(),
                row.body());
    }

    private final class StoredDelivery implements Delivery<byte[]> {

        private final DeadLetterRow row;

        StoredDelivery(DeadLetterRow row) {
            this.row = row;
        }

        @Override
        public byte[] payload() {
            return row.body();
        }

        @Override
        public @Nullable String id() {
            return row.messageId();
        }

        @Override
        public byte[] body() {
            return row.body();
        }

        @Override
        public Map<String, String> headers() {
            return row.headers();
        }

        @Override
        public Mono<Void> settle(Settlement settlement) {
            return settlement instanceof Settlement.Acknowledge
                    ? transactions
                            .inTransaction(
                                    connection -> table.remove(connection, row).thenReturn(true))
                            .then()
                    : Mono.empty();
        }

        @Override
        public String origin() {
            return row.origin();
        }
    }
}
