package io.onceflux.examples.demo;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.onceflux.examples.loyalty.OrderCompleted;
import io.onceflux.services.ConsumedTopic;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A topic of Kafka and the group that consumes it. The shop does not choose partitions: its messages go round, so that the copies of an order
 * are in different ones.
 */
final class KafkaTopic implements Broker {

    private static final int PARTITIONS = 12;
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String topic;
    private final String bootstrap;
    private final ConsumedTopic consumed;
    private final KafkaProducer<byte[], byte[]> shop;
    private int published;

    private KafkaTopic(String topic, String bootstrap, ConsumedTopic consumed, KafkaProducer<byte[], byte[]> shop) {
        this.topic = topic;
        this.bootstrap = bootstrap;
        this.consumed = consumed;
        this.shop = shop;
    }

    static KafkaTopic create(String topic, String bootstrap) throws IOException {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "acks", "all");
        ConsumedTopic consumed = ConsumedTopic.at(bootstrap, topic, group(topic), LIMIT);
        consumed.create(PARTITIONS);
        return new KafkaTopic(
                topic,
                bootstrap,
                consumed,
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer()));
    }

    @Override
    public Map<String, String> settings(Contender contender) {
        return Map.of(
                contender.property("kafka.bootstrap"), bootstrap,
                contender.property("topic"), topic,
                contender.property("group"), group(topic));
    }

    private static String group(String topic) {
        return topic;
    }

    @Override
    public void publish(List<OrderCompleted> orders) throws Exception {
        List<Future<?>> sent = new ArrayList<>();
        for (OrderCompleted order : orders) {
            int partition = published++ % PARTITIONS;
            sent.add(shop.send(new ProducerRecord<>(topic, partition, null, JSON.writeValueAsBytes(order))));
        }
        for (Future<?> one : sent) {
            one.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
    }

    /** Behind what the group has committed. */
    @Override
    public long backlog() throws IOException {
        return consumed.lag();
    }

    @Override
    public long deadLetters() throws IOException {
        return consumed.givenUp();
    }

    /** None while the group shares the partitions out. */
    @Override
    public int consumers() throws IOException {
        return consumed.sharing();
    }

    @Override
    public boolean keepsWhatIsDone() {
        return true;
    }

    @Override
    public void rewind() throws Exception {
        long start = System.nanoTime();
        while (!consumed.members().isEmpty()) { // Who did not take leave is missed once its session has timed out.
            if (System.nanoTime() - start > LIMIT.toNanos()) {
                throw new IllegalStateException("group " + group(topic) + " still has members: " + consumed.members());
            }
            Thread.sleep(100);
        }
        consumed.resetTo(0);
    }

    @Override
    public String toString() {
        return "topic";
    }

    /** The one for dead letters may not be there; nobody minds. */
    @Override
    public void close() {
        shop.close();
        consumed.delete();
        consumed.close();
    }
}
