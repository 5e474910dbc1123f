package io.onceflux;

import static io.onceflux.Require.positive;

import io.onceflux.postgres.DeadLetterRow;
import io.onceflux.postgres.DeadLetterTable;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The dead letters of a consumer in a {@link DeadLetterTable}, handled again by the consumer itself. */
final class StoredDeadLetters implements DeadLetters {

    private static final int PAGE = 100;

    private final DeadLetterTable table;
    private final Transactions transactions;
    private final String consumer;
    private final Function<Flux<Delivery<byte[]>>, Flux<Outcome>> handler;

    StoredDeadLetters(
            DeadLetterTable table,
            Transactions transactions,
            String consumer,
            Function<Flux<Delivery<byte[]>>, Flux<Outcome>> handler) {
        this.table = table;
        this.transactions = transactions;
        this.consumer = consumer;
        this.handler = handler;
    }

    @Override
    public Flux<DeadLetter> list() {
        return rows().map(StoredDeadLetters::letter);
    }

    @Override
    public Flux<DeadLetter> replay(Predicate<DeadLetter> which, int perSecond) {
        positive("perSecond", perSecond);
        return rows().filter(row -> which.test(letter(row)))
                .delayElements(Duration.ofNanos(1_000_000_000L / perSecond))
                .concatMap(row -> again(row), 1);
    }

    /** A row is removed when its delivery is acknowledged, unless a new failure has renewed it before. */
    private Flux<DeadLetter> again(DeadLetterRow row) {
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
