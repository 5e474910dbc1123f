package io.onceflux.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.DeadLetter;
import io.onceflux.FailureKind;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.jspecify.annotations.Nullable;

/**
 * A record in a topic of dead letters, put there by {@link DeadLetterRecord} or by somebody else; or a mark that one before it was
 * given back, because a record cannot be taken out of a topic.
 */
record KeptRecord(ConsumerRecord<byte[], byte[]> record, String defaultTopic) {

    private static final String GIVEN_BACK = DeadLetterRecord.PREFIX + "given-back";

    /** What {@link DeadLetterRecord} adds. */
    private static final List<String> ADDED = List.of(
            "topic",
            "partition",
            "offset",
            "timestamp",
            "consumer",
            "kind",
            "attempts",
            "sqlstate",
            "time",
            "reason",
            "message-key",
            "left-out");

    /** The offset of the record that this one marks as given back; null if it is no mark. */
    static @Nullable Long givenBack(ConsumerRecord<byte[], byte[]> record) {
        Header mark = record.headers().lastHeader(GIVEN_BACK);
        try {
            return mark == null || mark.value() == null ? null : Long.valueOf(new String(mark.value(), UTF_8));
        } catch (NumberFormatException e) { // Somebody else's header.
            return null;
        }
    }

    /** In the same partition, so that the two are deleted by retention in the same order as they came. */
    ProducerRecord<byte[], byte[]> mark() {
        Headers headers = new RecordHeaders();
        headers.add(GIVEN_BACK, Long.toString(record.offset()).getBytes(UTF_8));
        return new ProducerRecord<>(record.topic(), record.partition(), null, null, null, headers);
    }

    /** Whether nothing of the message is missing. */
    boolean isWhole() {
        return record.headers().lastHeader(DeadLetterRecord.LEFT_OUT) == null;
    }

    /** As it was, for the topic that it was consumed from. */
    ProducerRecord<byte[], byte[]> original() {
        Headers headers = new RecordHeaders(record.headers());
        ADDED.forEach(name -> headers.remove(DeadLetterRecord.PREFIX + name));
        String topic = added("topic");
        return new ProducerRecord<>(
                topic == null ? defaultTopic : topic, null, null, record.key(), record.value(), headers);
    }

    DeadLetter letter() {
        String reason = added("reason");
        return new DeadLetter(
                added("consumer"),
                added("message-key"),
                kind(),
                reason == null ? "unknown" : reason,
                added("sqlstate"),
                attempts(),
                time(),
                RecordText.of(record),
                record.value() == null ? new byte[0] : record.value());
    }

    private @Nullable FailureKind kind() {
        String kind = added("kind");
        return Arrays.stream(FailureKind.values())
                .filter(known -> known.name().equals(kind))
                .findFirst()
                .orElse(null);
    }

    private int attempts() {
        try {
            String attempts = added("attempts");
            return attempts == null ? 0 : Integer.parseInt(attempts);
        } catch (NumberFormatException e) { // Somebody else's header.
            return 0;
        }
    }

    private @Nullable Instant time() {
        try {
            String time = added("time");
            return time == null ? null : Instant.parse(time);
        } catch (DateTimeException e) { // Somebody else's header.
            return null;
        }
    }

    private @Nullable String added(String name) {
        Header header = record.headers().lastHeader(DeadLetterRecord.PREFIX + name);
        return header == null || header.value() == null ? null : new String(header.value(), UTF_8);
    }
}
