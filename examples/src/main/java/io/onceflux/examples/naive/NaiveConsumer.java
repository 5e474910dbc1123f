package io.onceflux.examples.naive;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.rabbitmq.client.ConnectionFactory;
import io.onceflux.examples.loyalty.OrderCompleted;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.kafka.receiver.KafkaReceiver;
import reactor.kafka.receiver.ReceiverOptions;
import reactor.rabbitmq.ConsumeOptions;
import reactor.rabbitmq.RabbitFlux;
import reactor.rabbitmq.Receiver;

/**
 * Checks, then acts: looks in the ledger whether the order is there, credits it if not, and acknowledges after that.
 *
 * <p>It is careful, and wrong. Two copies of an order that are handled at the same time both find nothing and both credit; an
 * instance that dies between the UPDATE and the INSERT has credited what the ledger does not know. Its prefetch and
 * concurrency are those of the loyalty service.
 */
public final class NaiveConsumer {

    static final int CONCURRENCY = 16;
    private static final int PREFETCH = 256;
    private static final ObjectReader JSON = new ObjectMapper().readerFor(OrderCompleted.class);

    private final DatabaseClient db;

    public NaiveConsumer(io.r2dbc.spi.ConnectionFactory connections) {
        this.db = DatabaseClient.create(connections);
    }

    /** From a queue of RabbitMQ. */
    public Mono<Void> run(String queue, ConnectionFactory broker) {
        return Flux.using(
                        () -> RabbitFlux.createReceiver(
                                new reactor.rabbitmq.ReceiverOptions().connectionFactory(broker)),
                        receiver -> receiver.consumeManualAck(queue, new ConsumeOptions().qos(PREFETCH)),
                        Receiver::close)
                .flatMap(
                        delivery -> creditOnceItHopes(delivery.getBody()).doOnSuccess(done -> delivery.ack()),
                        CONCURRENCY)
                .then();
    }

    /** From a topic of Kafka. */
    public Mono<Void> run(ReceiverOptions<byte[], byte[]> topic) {
        return KafkaReceiver.create(topic)
                .receive()
                .flatMap(
                        record -> creditOnceItHopes(record.value())
                                .doOnSuccess(done -> record.receiverOffset().acknowledge()),
                        CONCURRENCY)
                .then();
    }

    private Mono<Void> creditOnceItHopes(byte[] message) {
        return Mono.fromCallable(() -> JSON.<OrderCompleted>readValue(message))
                .flatMap(order -> isInLedger(order).flatMap(known -> known ? Mono.empty() : credit(order)));
    }

    private Mono<Boolean> isInLedger(OrderCompleted order) {
        return db.sql("SELECT EXISTS (SELECT FROM naive_point_ledger WHERE order_id = :order)")
                .bind("order", order.orderId())
                .mapValue(Boolean.class)
                .one();
    }

    private Mono<Void> credit(OrderCompleted order) {
        Mono<Void> balance = db.sql("UPDATE naive_balances SET points = points + :points WHERE customer_id = :customer")
                .bind("points", order.points())
                .bind("customer", order.customerId())
                .then();
        Mono<Void> ledger = db.sql("INSERT INTO naive_point_ledger (order_id, customer_id, points)"
                        + " VALUES (:order, :customer, :points)")
                .bind("order", order.orderId())
                .bind("customer", order.customerId())
                .bind("points", order.points())
                .then();
        return balance.then(ledger);
    }
}
