package io.onceflux.kafka;

import io.onceflux.InvalidSetupException;
import java.io.IOException;
import java.time.Duration;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TransactionalIdAuthorizationException;

/**
 * Gives the dead letters of one topic back: each together with the mark that says so, in one transaction, and by one replay at a time (docs/decisions/0017). That
 * which opens last ends the others: two that gave the same letter back would make two messages of it. Every call blocks.
 */
final class ReplayProducer implements AutoCloseable {

    private static final Duration CLOSING = Duration.ofSeconds(3);

    private final String deadLetterTopic;
    private final Producer<byte[], byte[]> producer;

    private ReplayProducer(String deadLetterTopic, Producer<byte[], byte[]> producer) {
        this.deadLetterTopic = deadLetterTopic;
        this.producer = producer;
    }

    /** Returns when whatever another replay of the topic has begun is over, done or not; what it did is seen by who reads from then on. */
    static ReplayProducer open(KafkaOptions options, String deadLetterTopic) throws IOException {
        String id = ClientSettings.replayId(deadLetterTopic);
        Producer<byte[], byte[]> producer = DeadLetterProducer.open(options, id);
        try {
            producer.initTransactions();
            return new ReplayProducer(deadLetterTopic, producer);
        } catch (TransactionalIdAuthorizationException e) {
            producer.close(CLOSING);
            throw new InvalidSetupException(
                    "The user has no right to transactional id '%s' at %s, by which a replay is the only one: grant WRITE and DESCRIBE on it."
                            .formatted(id, options.broker()),
                    e);
        } catch (KafkaException e) {
            producer.close(CLOSING);
            throw new IOException(
                    "the replay of topic '%s' could not begin at %s: %s"
                            .formatted(deadLetterTopic, options.broker(), Refusals.wordsOf(e)),
                    e);
        }
    }

    /** Both, or none of them. If the broker does not answer, the next replay finds out. */
    void giveBack(ProducerRecord<byte[], byte[]> original, ProducerRecord<byte[], byte[]> mark) throws IOException {
        try {
            producer.beginTransaction();
            DeadLetterProducer.store(producer, original);
            DeadLetterProducer.store(producer, mark);
            producer.commitTransaction();
        } catch (KafkaException | IOException e) {
            throw explained(e);
        }
    }

    private IOException explained(Exception e) {
        if (Refusals.find(e, ProducerFencedException.class) != null
                || Refusals.find(e, InvalidProducerEpochException.class) != null) {
            return new IOException(
                    "another replay of topic '%s' has begun, which goes on where this one ends"
                            .formatted(deadLetterTopic),
                    e);
        }
        return e instanceof IOException said
                ? said
                : new IOException(
                        "a dead letter of topic '%s' could not be given back: %s"
                                .formatted(deadLetterTopic, Refusals.wordsOf(e)),
                        e);
    }

    /** The client aborts what was begun and not committed. */
    @Override
    public void close() {
        producer.close(CLOSING);
    }
}
