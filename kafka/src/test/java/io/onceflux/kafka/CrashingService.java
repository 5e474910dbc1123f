package io.onceflux.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.Settlement;
import io.r2dbc.spi.ConnectionFactories;
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
        Moment moment = Moment.valueOf(args[4]);
        IdempotentConsumer<Order> consumer = IdempotentConsumer.<Order>named("loyalty")
                .identifiedByMessageId()
                .lanes(8)
                .effect((order, db) ->
                        order.apply(db).then(moment == Moment.EFFECT_WRITTEN ? stand(moment) : Mono.empty()))
                .build(ConnectionFactories.get(
                        args[3].replace("r2dbc:postgresql:", "r2dbc:pool:postgresql:") + "?maxSize=10"));
        Flux<Outcome> outcomes = KafkaDeliveries.from(KafkaOptions.topic(args[1])
                        .bootstrapServers(args[0])
                        .groupId(args[2])
                        .property("session.timeout.ms", 3_000)
                        .property("heartbeat.interval.ms", 500)
                        .messageIdFromHeader(Broker.ID)
                        .build())
                .<Delivery<byte[]>>map(Unacknowledged::new)
                .map(Delivery.<byte[], Order>decoding(body -> Order.of(new String(body, UTF_8))))
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
