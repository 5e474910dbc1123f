package io.onceflux.benchmarks.variant;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.benchmarks.scenario.Order;
import io.onceflux.benchmarks.scenario.Orders;
import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.services.ConsumedTopic;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A topic of 12 partitions, with the customer as the key of the record, filled before it is consumed. */
public final class BrokerTopic implements Backlog {

    private static final int PARTITIONS = 12;
    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final String name;
    private final Orders orders;
    private final ConsumedTopic consumed;
    private final KafkaProducer<byte[], byte[]> producer;
    private long published;

    public BrokerTopic(Site site, Orders orders) {
        this.name = site.topic();
        this.orders = orders;
        this.consumed = ConsumedTopic.at(site.kafkaBootstrap(), name, name, LIMIT);
        this.producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", site.kafkaBootstrap(), "acks", "all", "linger.ms", 5),
                new ByteArraySerializer(),
                new ByteArraySerializer());
        try {
            consumed.create(PARTITIONS);
            consumed.createDeadLetters(PARTITIONS);
        } catch (IOException e) {
            throw new IllegalStateException("the topic could not be created", e);
        }
    }

    @Override
    public void fill(long messages) {
        try {
            for (long i = 0; i < messages; i++) {
                Order order = orders.message(published++);
                var sent = producer.send(
                        new ProducerRecord<>(name, order.customerId().getBytes(UTF_8), order.toJson()));
                if (i == messages - 1) {
                    producer.flush();
                    sent.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
                }
            }
        } catch (InterruptedException | ExecutionException | TimeoutException e) {
            throw new IllegalStateException("the topic could not be filled", e);
        }
    }

    @Override
    public void requireEmpty() {
        try {
            long left = consumed.lag();
            long givenUp = consumed.givenUp();
            if (left > 0 || givenUp > 0) {
                throw new IllegalStateException(
                        "%d messages are left in %s, %d given up".formatted(left, name, givenUp));
            }
        } catch (IOException e) {
            throw new IllegalStateException("the topic could not be looked at", e);
        }
    }

    /** Waits until so many consumers share the partitions. */
    public void awaitMembers(int count) {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        try {
            while (consumed.sharing() != count) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("the group has not become one of %d".formatted(count));
                }
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(100));
            }
        } catch (IOException e) {
            throw new IllegalStateException("the group could not be looked at", e);
        }
    }

    @Override
    public long published() {
        return published;
    }

    @Override
    public long distinct() {
        return orders.distinct(published);
    }

    @Override
    public void close() {
        producer.close();
        consumed.delete();
        consumed.close();
    }
}
