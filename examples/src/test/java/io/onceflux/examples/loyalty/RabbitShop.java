package io.onceflux.examples.loyalty;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.MessageProperties;
import io.onceflux.DeadLetters;
import io.onceflux.Delivery;
import io.onceflux.rabbit.QueueDeclaration;
import io.onceflux.rabbit.RabbitDeadLetters;
import io.onceflux.rabbit.RabbitDeliveries;
import io.onceflux.rabbit.RabbitOptions;
import io.onceflux.services.RabbitService;
import java.io.IOException;
import java.util.Map;
import reactor.core.publisher.Flux;

/** With a queue of RabbitMQ. */
final class RabbitShop extends Shop {

    final String queue = "loyalty-" + System.nanoTime();
    final Channel channel;
    private final Connection broker;

    RabbitShop() throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(RabbitService.shared().uri());
        broker = factory.newConnection();
        channel = broker.createChannel();
    }

    private RabbitOptions options() {
        return RabbitOptions.queue(queue)
                .uri(RabbitService.shared().uri())
                .declare(QueueDeclaration.classic())
                .build();
    }

    @Override
    Flux<Delivery<byte[]>> orders() {
        return RabbitDeliveries.from(options());
    }

    @Override
    DeadLetters deadLetters() {
        return RabbitDeadLetters.of(options());
    }

    @Override
    Map<String, String> brokerSettings() {
        return Map.of(
                "loyalty.queue",
                queue,
                "loyalty.rabbit.uri",
                RabbitService.shared().uri());
    }

    @Override
    void awaitConsumer() {
        await().atMost(LIMIT).ignoreExceptions().until(() -> {
            try (Channel look = broker.createChannel()) {
                return look.queueDeclarePassive(queue).getConsumerCount() == 1;
            }
        });
    }

    @Override
    void publish(String json) throws Exception {
        channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, json.getBytes(UTF_8));
    }

    long waiting() throws Exception {
        return channel.messageCount(queue);
    }

    @Override
    void awaitDeadLetters(int count) {
        await().atMost(LIMIT).until(() -> channel.messageCount(queue + ".dlq") == count);
    }

    @Override
    public void close() throws IOException {
        channel.queueDelete(queue);
        channel.queueDelete(queue + ".dlq");
        broker.close();
        super.close();
    }
}
