package io.onceflux;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.util.retry.Retry;

/** Tells the broker. A failure here never undoes an effect and never ends the stream: the redelivery is a duplicate. */
final class Settling {

    private final Settings settings;
    private final @Nullable TableDeadLetters deadLetters;
    private final Mono<Void> stopRequested;

    Settling(Settings settings, @Nullable TableDeadLetters deadLetters, Mono<Void> stopRequested) {
        this.settings = settings;
        this.deadLetters = deadLetters;
        this.stopRequested = stopRequested;
    }

    /** What the source of a delivery is to be told, as long as the delivery is current. */
    record Answer(Delivery<?> delivery, Settlement settlement, BooleanSupplier isCurrent) {}

    /**
     * Settles deliveries side by side.
     *
     * @return completes when the broker has been told of each, or will not be. A dead letter is tried again until it is stored, as
     *     long as the delivery is current and the consumer is not stopping: giving it up would lose the message.
     */
    Mono<Void> settle(List<Answer> answers) {
        return Mono.defer(() -> {
            List<Telling> together = new ArrayList<>(answers.size());
            List<Mono<Void>> all = new ArrayList<>();
            for (Answer answer : answers) {
                if (answer.settlement() instanceof Settlement.DeadLetter) {
                    all.add(untilStored(new Telling(answer)));
                } else {
                    together.add(new Telling(answer));
                }
            }
            if (!together.isEmpty()) {
                all.add(once(together));
            }
            return sideBySide(all);
        });
    }

    /** Under one limit, as they begin at the same time. */
    private Mono<Void> once(List<Telling> tellings) {
        return Limits.within(
                        settings.settleLimit(),
                        sideBySide(tellings.stream().map(this::eachForItself).toList()))
                .onErrorResume(error -> {
                    tellings.forEach(telling -> telling.failed(error));
                    return Mono.empty();
                })
                .doOnCancel(() -> tellings.forEach(Telling::cutOff));
    }

    private static Mono<Void> sideBySide(List<Mono<Void>> all) {
        return all.size() == 1 ? all.get(0) : Mono.when(all);
    }

    private Mono<Void> eachForItself(Telling telling) {
        return noted(telling, Mono.defer(() -> tell(telling.answer)));
    }

    private Mono<Void> untilStored(Telling telling) {
        Mono<Void> stored = Limits.within(settings.settleLimit(), Mono.defer(() -> tell(telling.answer)))
                .retryWhen(Retry.from(failures -> failures.concatMap(
                        failure -> nextTry(telling, failure.failure(), (int) failure.totalRetries() + 1))));
        return noted(telling, stored).doOnCancel(telling::cutOff);
    }

    /** Completes either way: a failure is the listener's to know. */
    private static Mono<Void> noted(Telling telling, Mono<Void> told) {
        return told.doOnSuccess(done -> telling.succeeded()).onErrorResume(error -> {
            telling.failed(error);
            return Mono.empty();
        });
    }

    /** Where dead letters are kept in a table, the source has nothing to do but to forget the message. */
    private Mono<Void> tell(Answer answer) {
        Delivery<?> delivery = answer.delivery();
        if (deadLetters != null && answer.settlement() instanceof Settlement.DeadLetter why) {
            byte[] body = TableDeadLetters.bodyOf(delivery);
            if (body != null) {
                return deadLetters
                        .store(delivery, body, why.failure())
                        .then(Mono.defer(() -> delivery.settle(Settlement.acknowledge())));
            }
        }
        return delivery.settle(answer.settlement());
    }

    private Mono<Long> nextTry(Telling telling, Throwable error, int failures) {
        Answer answer = telling.answer;
        if (!answer.isCurrent().getAsBoolean()) {
            return Mono.error(error);
        }
        settings.listener().onSettleFailed(answer.delivery(), answer.settlement(), error);
        if (telling.ended.get()) { // Cut off meanwhile: this must not be the last word.
            settings.listener().onUnsettled(answer.delivery(), answer.settlement());
        }
        Duration pause =
                settings.failurePolicy().backoff(FailureKind.INFRASTRUCTURE).after(failures);
        return Mono.firstWithSignal(Mono.delay(pause), stopRequested.then(Mono.error(error)));
    }

    /** An answer on its way; how that ends is told to the listener, once. */
    private final class Telling {

        private final Answer answer;
        private final AtomicBoolean ended = new AtomicBoolean();

        Telling(Answer answer) {
            this.answer = answer;
        }

        void succeeded() {
            if (ended.compareAndSet(false, true)) {
                settings.listener().onSettled(answer.delivery(), answer.settlement());
            }
        }

        void failed(Throwable error) {
            if (ended.compareAndSet(false, true)) {
                settings.listener().onSettleFailed(answer.delivery(), answer.settlement(), error);
                settings.listener().onUnsettled(answer.delivery(), answer.settlement());
            }
        }

        void cutOff() {
            failed(new CancellationException("cut off before it was told"));
        }
    }
}
