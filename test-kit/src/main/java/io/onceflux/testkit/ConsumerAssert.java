package io.onceflux.testkit;

import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Outcome;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.assertj.core.api.AbstractAssert;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Assertions about a consumer.
 *
 * @param <T> the payload
 */
public final class ConsumerAssert<T> extends AbstractAssert<ConsumerAssert<T>, IdempotentConsumer<T>> {

    private static final int AT_THE_SAME_TIME = 8;
    private static final int LATER = 3;
    private static final Duration LIMIT = Duration.ofMinutes(1);

    ConsumerAssert(IdempotentConsumer<T> consumer) {
        super(consumer, ConsumerAssert.class);
    }

    /**
     * A message that comes eight times at once and three times later is applied once; the others are duplicates, or stale. The consumer
     * {@linkplain IdempotentConsumer#process processes} it, so it really happens: with a message that was not applied before. The pool should
     * have eight connections.
     */
    public ConsumerAssert<T> appliesOnce(T message) {
        return appliesOnce(null, message);
    }

    /** The same for a message whose id is beside its payload. */
    public ConsumerAssert<T> appliesOnce(@Nullable String id, T message) {
        isNotNull();
        List<Outcome> outcomes = new ArrayList<>(atOnce(id, message));
        outcomes.addAll(later(id, message));
        requireDone(outcomes);
        long applied =
                outcomes.stream().filter(Outcome.Applied.class::isInstance).count();
        if (applied != 1) {
            failWithMessage(
                    "Expected %s to apply %s once of %d times, but it applied it %d times: %s",
                    actual, message, outcomes.size(), applied, outcomes);
        }
        return this;
    }

    /**
     * Whatever the consumer makes of copies, they change nothing: what the state says after the message was handled once is what it says after it
     * came again, eight times at once and three times later. Also for effects without a claim that set a value.
     *
     * @param state reads what the effect changes, such as a query; is compared by {@code equals}
     */
    public <S> ConsumerAssert<T> leavesTheSame(Mono<S> state, T message) {
        isNotNull();
        requireDone(List.of(process(null, message)));
        S once = Objects.requireNonNull(state.block(LIMIT), "the state");
        List<Outcome> outcomes = new ArrayList<>(atOnce(null, message));
        outcomes.addAll(later(null, message));
        requireDone(outcomes);
        S more = Objects.requireNonNull(state.block(LIMIT), "the state");
        if (!once.equals(more)) {
            failWithActualExpectedAndMessage(
                    more,
                    once,
                    "Expected copies of %s to change nothing, but after one it was%n  %s%nand after %d more%n  %s",
                    message,
                    once,
                    outcomes.size(),
                    more);
        }
        return this;
    }

    private void requireDone(List<Outcome> outcomes) {
        outcomes.stream().filter(outcome -> !outcome.isDone()).findFirst().ifPresent(outcome -> {
            throw failure("Expected the message to be applied, but it became %s", outcome);
        });
    }

    private List<Outcome> atOnce(@Nullable String id, T message) {
        return Objects.requireNonNull(Flux.range(0, AT_THE_SAME_TIME)
                .flatMap(copy -> actual.process(Delivery.of(id, message)), AT_THE_SAME_TIME)
                .collectList()
                .block(LIMIT));
    }

    private List<Outcome> later(@Nullable String id, T message) {
        List<Outcome> outcomes = new ArrayList<>();
        for (int copy = 0; copy < LATER; copy++) {
            outcomes.add(process(id, message));
        }
        return outcomes;
    }

    private Outcome process(@Nullable String id, T message) {
        return Objects.requireNonNull(actual.process(Delivery.of(id, message)).block(LIMIT));
    }
}
