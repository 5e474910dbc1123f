package io.onceflux;

import java.time.Duration;
import java.util.concurrent.CancellationException;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.SignalType;
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
     * @return completes when the broker has been told, or will not be. A dead letter is tried again until it is stored, as
     *     long as the delivery is current and the consumer is not stopping: giving it up would lose the message.
     */
    Mono<Void> settle(Delivery<?> delivery, Settlement settlement) {
        Mono<Void> once = Mono.defer(() -> tell(delivery, settlement)).timeout(settings.settleLimit());
        Mono<Void> settled = settlement instanceof Settlement.DeadLetter
                ? once.retryWhen(Retry.from(failures -> failures.concatMap(
                        failure -> nextTry(delivery, settlement, failure.failure(), (int) failure.totalRetries() + 1))))
                : once;
        return settled.doOnSuccess(done -> settings.listener().onSettled(delivery, settlement))
                .onErrorResume(error -> {
                    unsettled(delivery, settlement, error);
                    return Mono.<Void>empty();
                })
                .doFinally(end -> {
                    if (end == SignalType.CANCEL) {
                        unsettled(delivery, settlement, new CancellationException("cut off before it was told"));
                    }
                });
    }

    private void unsettled(Delivery<?> delivery, Settlement settlement, Throwable error) {
        settings.listener().onSettleFailed(delivery, settlement, error);
        settings.listener().onUnsettled(delivery, settlement);
    }

    /** Where dead letters are kept in a table, the source has nothing to do but to forget the message. */
    private Mono<Void> tell(Delivery<?> delivery, Settlement settlement) {
        if (deadLetters != null && settlement instanceof Settlement.DeadLetter why) {
            byte[] body = delivery.body();
            if (body != null) {
                return deadLetters
                        .store(delivery, body, why.failure())
                        .then(Mono.defer(() -> delivery.settle(Settlement.acknowledge())));
            }
        }
        return delivery.settle(settlement);
    }

    private Mono<Long> nextTry(Delivery<?> delivery, Settlement settlement, Throwable error, int failures) {
        if (!delivery.isCurrent()) {
            return Mono.error(error);
        }
        settings.listener().onSettleFailed(delivery, settlement, error);
        Duration pause =
                settings.failurePolicy().backoff(FailureKind.INFRASTRUCTURE).after(failures);
        return Mono.firstWithSignal(Mono.delay(pause), stopRequested.then(Mono.error(error)));
    }
}
