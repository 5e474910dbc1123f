package io.onceflux;

import static io.onceflux.Require.positive;

import io.onceflux.postgres.DeadLetterRow;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The dead letters of a consumer in a table, handled again by the consumer itself, one after the other. */
final class StoredDeadLetters implements DeadLetters {

    private final TableDeadLetters table;
    private final Function<Delivery<byte[]>, Mono<Outcome>> handler;
    private final UnaryOperator<Mono<Boolean>> whileRunning;
    private final Mono<Boolean> databaseAnswers;

    /**
     * @param handler handles one within a time, and settles nothing
     * @param whileRunning lets what runs end before the consumer has stopped, and refuses it afterwards
     */
    StoredDeadLetters(
            TableDeadLetters table,
            Function<Delivery<byte[]>, Mono<Outcome>> handler,
            UnaryOperator<Mono<Boolean>> whileRunning,
            Mono<Boolean> databaseAnswers) {
        this.table = table;
        this.handler = handler;
        this.whileRunning = whileRunning;
        this.databaseAnswers = databaseAnswers;
    }

    @Override
    public Flux<DeadLetter> list() {
        return apart(table.rows().map(StoredDeadLetters::letter));
    }

    @Override
    public Flux<DeadLetter> replay(Predicate<DeadLetter> which, int perSecond) {
        positive("perSecond", perSecond);
        return apart(table.rows()
                .filter(row -> which.test(letter(row)))
                .delayElements(Duration.ofNanos(1_000_000_000L / perSecond))
                .concatMap(
                        row -> whileRunning
                                .apply(isGivenBack(row))
                                .filter(isGivenBack -> isGivenBack)
                                .map(isGivenBack -> letter(row)),
                        1));
    }

    private static Flux<DeadLetter> apart(Flux<DeadLetter> letters) {
        return letters.contextWrite(CallersTransaction::without).onErrorStop();
    }

    /** Handles it, and removes it if it is done with; another that replays it at the same time may have removed it before. */
    private Mono<Boolean> isGivenBack(DeadLetterRow row) {
        return Mono.defer(() -> handler.apply(new StoredDelivery(row)))
                .flatMap(outcome -> outcome.settlement() instanceof Settlement.DeadLetter why
                        ? stays(row, why.failure()).thenReturn(false)
                        : table.remove(row));
    }

    /** With its new reason; but an outage of the database is no word on any letter. */
    private Mono<Boolean> stays(DeadLetterRow row, Failure failure) {
        Mono<Boolean> isWordOnIt = failure.kind() == FailureKind.INFRASTRUCTURE ? databaseAnswers : Mono.just(true);
        return isWordOnIt.flatMap(isOne -> isOne
                ? table.renew(row, failure)
                : Mono.error(() -> new IllegalStateException(
                        ("the replay has ended, because the database does not take dead letter %d: %s. What was not given back is"
                                        + " still kept")
                                .formatted(row.number(), failure.reason()),
                        failure.cause())));
    }

    private static DeadLetter letter(DeadLetterRow row) {
        return new DeadLetter(
                row.consumer(),
                row.messageKey(),
                kind(row.kind()),
                row.reason(),
                row.sqlState(),
                row.attempts(),
                row.failedAt(),
                row.headers(),
                row.body());
    }

    private static @Nullable FailureKind kind(String name) {
        return Arrays.stream(FailureKind.values())
                .filter(known -> known.name().equals(name))
                .findFirst()
                .orElse(null);
    }

    /** A row as a message; the replay itself removes or renews it. */
    private record StoredDelivery(DeadLetterRow row) implements Delivery<byte[]> {

        @Override
        public byte[] payload() {
            String without = row.headers().get(NO_BODY);
            if (without != null && row.body().length == 0) {
                throw new PermanentFailure("the message had no body: " + without);
            }
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
            return Mono.empty();
        }

        @Override
        public String origin() {
            return row.origin();
        }
    }
}
