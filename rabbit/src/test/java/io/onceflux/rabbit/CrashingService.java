package io.onceflux.rabbit;

import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.Settlement;
import io.r2dbc.spi.ConnectionFactories;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A service that gets no further than a chosen moment with any message, says so, and waits to be killed. */
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
                .lanes(Integer.parseInt(args[4]))
                .maxBatch(Integer.parseInt(args[5]))
                .effect((order, db) ->
                        order.apply(db).then(moment == Moment.EFFECT_WRITTEN ? stand(moment) : Mono.empty()))
                .build(ConnectionFactories.get(
                        args[2].replace("r2dbc:postgresql:", "r2dbc:pool:postgresql:") + "?maxSize=10"));
        Flux<Outcome> outcomes = RabbitDeliveries.from(
                        RabbitOptions.queue(args[1]).uri(args[0]).build())
                .<Delivery<byte[]>>map(Unacknowledged::new)
                .map(Delivery.<byte[], Order>decoding(body -> Order.of(new String(body, StandardCharsets.UTF_8))))
                .transform(consumer);
        outcomes.then().block();
    }

    private static Mono<Void> stand(Moment moment) {
        return Mono.fromRunnable(() -> System.out.println(moment)).then(Mono.never());
    }

    /** A delivery whose acknowledgement, which is due after the commit, does not leave the process. */
    private record Unacknowledged(Delivery<byte[]> delivery) implements Delivery<byte[]> {

        @Override
        public byte[] payload() {
            return delivery.payload();
        }

        @Override
        public @Nullable String id() {
            return delivery.id();
        }

        @Override
        public Mono<Void> settle(Settlement settlement) {
            return Mono.fromRunnable(() -> System.out.println(Moment.COMMITTED));
        }
    }
}
