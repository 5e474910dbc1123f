package io.onceflux;

import java.time.Duration;
import reactor.core.publisher.Mono;
import reactor.util.retry.Retry;

/** Tells the broker. A failure here never undoes an effect and never ends the stream: the redelivery is a duplicate. */
final class Settling {

    private final Settings settings;
    private final Mono<Void> stopRequested;

    Settling(Settings settings, Mono<Void> stopRequested) {
        this.settings = settings;
        this.stopRequested = stopRequested;
    }

    /**
     * Settles a delivery.
     *
     * @return completes when the broker has been told, or will not be. A dead letter is tried again until it is stored, as
     *     long as the delivery is current and the consumer is not stopping: giving it up would lose the message.
     */
    Mono<Void> settle(Delivery<?> delivery, Settlement settlement) {
        Mono<Void> once = Mono.defer(() -> delivery.settle(settlement)).timeout(settings.settleLimit());
        Mono<Void> settled = settlement instanceof Settlement.DeadLetter
                ? once.retryWhen(Retry.from(failures -> failures.concatMap(
                        failure -> nextTry(delivery, settlement, failure.failure(), (int) failure.totalRetries() + 1))))
                : once;
        return settled.doOnSuccess(done -> settings.listener().onSettled(delivery, settlement))
                .onErrorResume(error -> {
                    settings.listener().onSettleFailed(delivery, settlement, error);
                    return Mono.empty();
                });
    }

    private Mono<Long> nextTry(Delivery<?> delivery, Settlement settlement, Throwable error, int failures) {
        if (!delivery.isCurrent()) {
            return Mono.error(error);
        }
        settings.listener().onSettleFailed(delivery, settlement, error);
        Duration pause = settings.backoff().after(failures);
        return Mono.firstWithSignal(Mono.delay(pause), stopRequested.then(Mono.error(error)));
    }
}
