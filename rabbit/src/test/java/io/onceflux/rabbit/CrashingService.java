package io.onceflux.rabbit;

import io.onceflux.ConsumerListener;
import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.r2dbc.spi.ConnectionFactories;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A service that stands still at a chosen moment, says so, and waits to be killed. */
final class CrashingService {

    enum Moment {
        EFFECT_WRITTEN,
        COMMITTED
    }

    private CrashingService() {}

    public static void main(String[] args) {
        Moment moment = Moment.valueOf(args[3]);
        IdempotentConsumer<Order> consumer = IdempotentConsumer.<Order>named("loyalty")
                .identifiedByMessageId()
                .lanes(2)
                .effect((order, db) ->
                        order.apply(db).then(moment == Moment.EFFECT_WRITTEN ? stand(moment) : Mono.empty()))
                .listener(new ConsumerListener() {
                    @Override
                    public void onOutcome(Delivery<?> delivery, Outcome outcome, Duration elapsed) {
                        standBlocking(moment);
                    }
                })
                .build(ConnectionFactories.get(
                        args[2].replace("r2dbc:postgresql:", "r2dbc:pool:postgresql:") + "?maxSize=4"));
        Flux<Outcome> outcomes = RabbitDeliveries.from(
                        RabbitOptions.queue(args[1]).uri(args[0]).build())
                .map(Delivery.<byte[], Order>decoding(body -> Order.of(new String(body, StandardCharsets.UTF_8))))
                .transform(consumer);
        outcomes.then().block();
    }

    private static Mono<Void> stand(Moment moment) {
        return Mono.fromRunnable(() -> System.out.println(moment)).then(Mono.never());
    }

    private static void standBlocking(Moment moment) {
        System.out.println(moment);
        try {
            new CountDownLatch(1).await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
