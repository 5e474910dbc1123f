package io.onceflux;

import java.time.Duration;
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

    /**
     * Settles a delivery.
     *
     * @param isCurrent whether it can still be answered
     * @return completes when the broker has been told, or will not be. A dead letter is tried again until it is stored, as
     *     long as the delivery is current and the consumer is not stopping: giving it up would lose the message.
     */
    Mono<Void> settle(Delivery<?> delivery, Settlement settlement, BooleanSupplier isCurrent) {
        return Mono.defer(() -> {
            AtomicBoolean ended = new AtomicBoolean();
            return told(ended, delivery, settlement, isCurrent)
                    .doOnSuccess(done -> {
                        if (ended.compareAndSet(false, true)) {
                            settings.listener().onSettled(delivery, settlement);
                        }
                    })
                    .onErrorResume(error -> {
                        failed(ended, delivery, settlement, error);
                        return Mono.empty();
                    })
                    .doOnCancel(() -> failed(
                            ended, delivery, settlement, new CancellationException("cut off before it was told")));
        });
    }

    private void failed(AtomicBoolean ended, Delivery<?> delivery, Settlement settlement, Throwable error) {
        if (ended.compareAndSet(false, true)) {
            settings.listener().onSettleFailed(delivery, settlement, error);
            settings.listener().onUnsettled(delivery, settlement);
        }
    }

    private Mono<Void> told(
            AtomicBoolean ended, Delivery<?> delivery, Settlement settlement, BooleanSupplier isCurrent) {
        Mono<Void> once = Limits.within(settings.settleLimit(), Mono.defer(() -> tell(delivery, settlement)));
        return settlement instanceof Settlement.DeadLetter
                ? once.retryWhen(Retry.from(failures -> failures.concatMap(failure -> nextTry(
                        ended, delivery, settlement, isCurrent, failure.failure(), (int) failure.totalRetries() + 1))))
                : once;
    }

    /** Where dead letters are kept in a table, the source has nothing to do but to forget the message. */
    private Mono<Void> tell(Delivery<?> delivery, Settlement settlement) {
        if (deadLetters != null && settlement instanceof Settlement.DeadLetter why) {
            byte[] body = TableDeadLetters.bodyOf(delivery);
            if (body != null) {
                return deadLetters
                        .store(delivery, body, why.failure())
                        .then(Mono.defer(() -> delivery.settle(Settlement.acknowledge())));
            }
        }
        return delivery.settle(settlement);
    }

    private Mono<Long> nextTry(
            AtomicBoolean ended,
            Delivery<?> delivery,
            Settlement settlement,
            BooleanSupplier isCurrent,
            Throwable error,
            int failures) {
        if (!isCurrent.getAsBoolean()) {
            return Mono.error(error);
        }
        settings.listener().onSettleFailed(delivery, settlement, error);
        if (ended.get()) { // Cut off meanwhile: this must not be the last word.
            settings.listener().onUnsettled(delivery, settlement);
        }
        Duration pause =
                settings.failurePolicy().backoff(FailureKind.INFRASTRUCTURE).after(failures);
        return Mono.firstWithSignal(Mono.delay(pause), stopRequested.then(Mono.error(error)));
    }
}
