package io.onceflux.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.Failure;
import io.onceflux.Settlement;
import java.time.Instant;
import java.util.Arrays;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.jspecify.annotations.Nullable;

/**
 * A record as a dead letter: its key, value and headers as they were, null too, and headers that say why. Its timestamp is kept in
 * one of them: in its place the topic's retention would count from it.
 *
 * <p>The topic may take no record as large. Then it says less, and after that it is a part: less and less of the value, then no
 * headers, at last no key. What is missing is said in a header, and where the original is.
 */
final class DeadLetterRecord {

    static final String PREFIX = "x-onceflux-";
    static final String LEFT_OUT = PREFIX + "left-out";
    private static final int SHORT_REASON = 100;
    private static final int SMALLEST_PART = 256;

    private final ConsumerRecord<byte[], byte[]> original;
    private final Settlement.DeadLetter why;
    private final String topic;
    private int step;
    private int kept;

    DeadLetterRecord(ConsumerRecord<byte[], byte[]> original, Settlement.DeadLetter why, String topic) {
        this.original = original;
        this.why = why;
        this.topic = topic;
        this.kept = original.value() == null ? 0 : original.value().length;
    }

    /** The richest that has not been tried yet; null after the last. */
    @Nullable
    ProducerRecord<byte[], byte[]> next() {
        step++;
        if (step <= 2) {
            return record(original.key(), original.value(), original.headers(), null);
        }
        if (kept > 0) {
            kept = kept / 2 < SMALLEST_PART ? 0 : kept / 2;
            return record(original.key(), part(), original.headers(), leftOut("value"));
        }
        return switch (step - lastOfTheValue()) {
            case 1 -> record(original.key(), null, null, leftOut("headers, value"));
            case 2 -> record(null, null, null, leftOut("key, headers, value"));
            default -> null;
        };
    }

    /** The step at which nothing of the value was left. */
    private int lastOfTheValue() {
        int steps = 2;
        for (int size = original.value() == null ? 0 : original.value().length; size > 0; steps++) {
            size = size / 2 < SMALLEST_PART ? 0 : size / 2;
        }
        return steps;
    }

    private byte @Nullable [] part() {
        return kept == 0 ? null : Arrays.copyOf(original.value(), kept);
    }

    private String leftOut(String what) {
        int size = original.value() == null ? 0 : original.value().length;
        return "%s (%d of %d bytes of the value are here): too large for the topic".formatted(what, kept, size);
    }

    private ProducerRecord<byte[], byte[]> record(
            byte @Nullable [] key, byte @Nullable [] value, @Nullable Headers headers, @Nullable String leftOut) {
        Headers all = headers == null ? new RecordHeaders() : new RecordHeaders(headers);
        describe(all, step > 1);
        put(all, "left-out", leftOut);
        return new ProducerRecord<>(topic, null, null, key, value, all);
    }

    private void describe(Headers headers, boolean brief) {
        Failure failure = why.failure();
        put(headers, "topic", original.topic());
        put(headers, "partition", original.partition());
        put(headers, "offset", original.offset());
        put(headers, "timestamp", Instant.ofEpochMilli(original.timestamp()));
        put(headers, "consumer", why.consumer());
        put(headers, "kind", failure.kind());
        put(headers, "attempts", failure.attempts());
        put(headers, "sqlstate", failure.sqlState());
        put(headers, "time", failure.time());
        if (brief) {
            put(
                    headers,
                    "reason",
                    failure.reason().substring(0, Math.min(failure.reason().length(), SHORT_REASON)));
        } else {
            put(headers, "reason", failure.reason());
            put(
                    headers,
                    "message-key",
                    failure.messageKey() == null ? null : failure.messageKey().id());
        }
    }

    private static void put(Headers headers, String name, @Nullable Object value) {
        if (value != null) {
            headers.add(PREFIX + name, value.toString().getBytes(UTF_8));
        }
    }
}
