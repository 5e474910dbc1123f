package io.onceflux.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.r2dbc.spi.ConnectionFactories;
import java.time.Duration;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A service with a slow effect that stops clean on SIGTERM, and tells of duplicates. */
final class SlowService {

    static final String DUPLICATE = "DUPLICATE";

    private SlowService() {}

    public static void main(String[] args) {
        IdempotentConsumer<Order> consumer = IdempotentConsumer.<Order>named("loyalty")
                .identifiedByMessageId()
                .lanes(4)
                .effect((order, db) -> Mono.delay(Duration.ofMillis(5)).then(order.note(db)))
                .build(ConnectionFactories.get(
                        args[3].replace("r2dbc:postgresql:", "r2dbc:pool:postgresql:") + "?maxSize=6"));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> consumer.stop().block(Duration.ofSeconds(20))));
        Flux<Outcome> outcomes = KafkaDeliveries.from(KafkaOptions.topic(args[1])
                        .bootstrapServers(args[0])
                        .groupId(args[2])
                        .messageIdFromHeader(Broker.ID)
                        .build())
                .map(Delivery.<byte[], Order>decoding(body -> Order.of(new String(body, UTF_8))))
                .transform(consumer);
        outcomes.filter(Outcome.Duplicate.class::isInstance)
                .doOnNext(duplicate -> System.out.println(DUPLICATE))
                .then()
                .block();
    }
}
