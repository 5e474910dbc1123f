package io.onceflux.kafka;

import io.onceflux.Delivery;
import io.onceflux.Settlement;
import io.onceflux.kafka.Assignments.Taken;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** A record of a topic, answered for as long as its partition is this consumer's. */
final class KafkaDelivery implements Delivery<ConsumerRecord<byte[], byte[]>> {

    private static final byte[] NO_VALUE = {};

    private final ConsumerRecord<byte[], byte[]> record;
    private final Assignment assignment;
    private final int round;
    private final DeadLetterProducer deadLetters;
    private final @Nullable Fencing fencing;
    private final KafkaOptions options;
    private final Runnable room;
    private final AtomicBoolean settled = new AtomicBoolean();
    private final AtomicBoolean deadLetterStored = new AtomicBoolean();

    /** @param room run when more of its partition may come, which had to wait */
    KafkaDelivery(
            ConsumerRecord<byte[], byte[]> record,
            Taken taken,
            DeadLetterProducer deadLetters,
            @Nullable Fencing fencing,
            KafkaOptions options,
            Runnable room) {
        this.record = record;
        this.assignment = taken.assignment();
        this.round = taken.round();
        this.deadLetters = deadLetters;
        this.fencing = fencing;
        this.options = options;
        this.room = room;
    }

    @Override
    public ConsumerRecord<byte[], byte[]> payload() {
        return record;
    }

    @Override
    public @Nullable String id() {
        return switch (options.idSource()) {
            case NONE -> null;
            case HEADER -> idFrom(String.valueOf(options.messageIdHeader()));
            case RECORD_KEY -> RecordText.id("the key of the record", record.key());
            case POSITION -> position().asId();
        };
    }

    private Position position() {
        return new Position(String.valueOf(assignment.topicId()), record.partition(), record.offset());
    }

    private @Nullable String idFrom(String name) {
        Header header = record.headers().lastHeader(name);
        return header == null ? null : RecordText.id("the header " + name, header.value());
    }

    @Override
    public @Nullable Object orderingKey() {
        return fencing == null ? record.key() : assignment.partition();
    }

    /** A record without a value (a tombstone) has an empty body, and its {@link #headers} say so. */
    @Override
    public byte[] body() {
        return record.value() == null ? NO_VALUE : record.value();
    }

    @Override
    public Map<String, String> headers() {
        return RecordText.of(record);
    }

    @Override
    public boolean isCurrent() {
        return assignment.isCurrent(record.offset(), round);
    }

    @Override
    public void handlingBegins() {
        assignment.handlingBegins();
    }

    @Override
    public void handlingEnded() {
        assignment.handlingEnded();
    }

    @Override
    public Mono<Void> settle(Settlement settlement) {
        return Mono.defer(
                () -> settled.get() ? Mono.empty() : answer(settlement).doOnSuccess(done -> settled.set(true)));
    }

    private Mono<Void> answer(Settlement settlement) {
        if (assignment.hasEnded()) {
            return tooLate();
        }
        if (settlement instanceof Settlement.DeadLetter why) {
            return deadLetter(why).then(Mono.defer(this::acknowledge));
        }
        if (settlement instanceof Settlement.Requeue) {
            return assignment.giveBack(record.offset()) ? Mono.empty() : tooLate();
        }
        return acknowledge();
    }

    private Mono<Void> deadLetter(Settlement.DeadLetter why) {
        Mono<Void> published = deadLetters.publish(record, why, deadLetterStored);
        Fencing fence = fencing;
        if (fence == null) {
            return published;
        }
        assignment.block(record.offset());
        return fence.hasPassed(position())
                .flatMap(passed -> passed
                        ? Mono.<Void>empty() // Somebody else has done it, or it is a dead letter already.
                        : published.then(Mono.defer(() -> fence.pass(position()))));
    }

    private Mono<Void> acknowledge() {
        return assignment.complete(record.offset(), room) ? Mono.empty() : tooLate();
    }

    private static Mono<Void> tooLate() {
        return Mono.error(() -> new IOException(
                "the partition is not this consumer's any more; who has it now gets its messages again"));
    }

    @Override
    public String origin() {
        return "topic %s, partition %d, offset %d".formatted(record.topic(), record.partition(), record.offset());
    }
}
