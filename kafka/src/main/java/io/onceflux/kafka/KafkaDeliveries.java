package io.onceflux.kafka;

import io.onceflux.Claims;
import io.onceflux.Delivery;
import io.onceflux.Intake;
import io.onceflux.InvalidSetupException;
import io.onceflux.PermanentFailure;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Deliveries from topics of Kafka, acknowledged by hand.
 *
 * <p>Each subscription has a consumer of its own, a member of the group. Messages are done in any order; the group's offset is
 * committed up to the first that is not, at an interval, when partitions are taken away, and at the end. What was done behind it comes
 * again after a crash, and is then a duplicate. A message that is let go comes again, here or at the partition's next owner.
 *
 * <p>Rebalance: what is under way of a partition that is taken away is waited for, as long as {@link KafkaOptions#drainLimit}; what
 * has not begun is dropped. Deliveries of a partition that is lost without notice, or of a consumer that failed, are not current any
 * more; what of them is under way may be delivered elsewhere at the same time, and one of the two is a duplicate. While effects run,
 * however slow, the consumer polls on, so the group keeps it.
 *
 * <p>Order: records of a partition with the same key keep theirs, unless {@link io.onceflux.ConsumerBuilder#orderedBy} says
 * otherwise; records without a key have none.
 *
 * <p>Demand: a consumer takes {@code maxInFlight} deliveries; up to three times {@code max.poll.records} wait here besides. Without
 * demand the partitions are paused. Deliveries are emitted on a thread of the source.
 *
 * <p>Settling completes when the answer is noted, which is before it is committed; for a dead letter after its copy is stored in
 * {@code <topic>.DLT} by all replicas in sync, and then the original noted as done. A dead letter has the key, value and headers of
 * the original, and headers {@code x-onceflux-...} that say where it came from and why it was given up. Of one that is too large for its
 * topic as much is stored as fits, with a header that says what is missing.
 *
 * <p>Errors, before the group has taken the consumer in for the first time: {@link InvalidSetupException} for settings that the
 * client refuses, a refused login, a missing topic or dead-letter topic, missing rights, a consumer that takes its ids from a source
 * that has none, and brokers that cannot be reached for the start limit. Afterwards outages are ridden out, and told to the
 * consumer's listener. Two errors end the flux even then, also {@link InvalidSetupException}: an {@link OffsetFence} that cannot know any more
 * what is done, and another instance that has taken this one's place with the same {@code group.instance.id}.
 *
 * <p>Closing commits what is done and leaves the group. In the middle of a rebalance nothing can be committed, so it waits for its end, for 5 s
 * at most; if it does not end, what was done since it began comes again, and is a duplicate. Closing takes at most ten seconds, also if the broker
 * does not answer; {@link io.onceflux.ConsumerListener#onSourceClosed} tells, and {@link io.onceflux.IdempotentConsumer#stop} waits for it.
 */
public final class KafkaDeliveries {

    private KafkaDeliveries() {}

    /**
     * The values of the records, until cancelled. A record without a value (a tombstone) cannot be decoded, so it becomes a dead
     * letter; who handles them uses {@link #records}.
     */
    public static Flux<Delivery<byte[]>> from(KafkaOptions options) {
        return records(options).map(Delivery.decoding(KafkaDeliveries::value));
    }

    private static byte[] value(ConsumerRecord<byte[], byte[]> record) {
        byte[] value = record.value();
        if (value == null) {
            throw new PermanentFailure("the record has no value (a tombstone)");
        }
        return value;
    }

    /** The records with key, headers and timestamp, until cancelled. Key and value may be null. */
    public static Flux<Delivery<ConsumerRecord<byte[], byte[]>>> records(KafkaOptions options) {
        return Flux.deferContextual(context -> {
            Intake intake = Intake.from(context);
            requireIds(options, intake);
            requirePositions(options, intake);
            warn(options, intake);
            return Flux.usingWhen(
                    Mono.fromCallable(() -> new KafkaSource(options, intake)),
                    KafkaSource::deliveries,
                    KafkaSource::close);
        });
    }

    private static void requireIds(KafkaOptions options, Intake intake) {
        Checked.that(
                !intake.takesIdsFromSource() || options.idSource() != KafkaOptions.IdSource.NONE,
                "consumer '%s' takes the ids of messages from their source, but it is not said where a record has its id: use"
                                .formatted(intake.consumer())
                        + " messageIdFromHeader(name), messageIdFromRecordKey() or messageIdFromPosition() of KafkaOptions,"
                        + " or identifiedBy(...) of the consumer");
    }

    private static void requirePositions(KafkaOptions options, Intake intake) {
        Claims claims = intake.claims();
        Checked.that(
                claims == null || !claims.followSource() || claims instanceof OffsetFence,
                "consumer '%s' keeps its claims in %s, which follows the order of its source: topics of Kafka need an OffsetFence"
                        .formatted(intake.consumer(), claims));
        Checked.that(
                claims == null || !claims.followSource() || options.idSource() == KafkaOptions.IdSource.POSITION,
                "consumer '%s' keeps its claims in %s, which needs messageIdFromPosition() of KafkaOptions"
                        .formatted(intake.consumer(), claims));
    }

    private static void warn(KafkaOptions options, Intake intake) {
        if (options.idSource() != KafkaOptions.IdSource.NONE && !intake.takesIdsFromSource()) {
            intake.listener()
                    .onWarning(
                            ("KafkaOptions say where a record has its id (%s), but consumer '%s' has identifiedBy(...), so that nobody looks"
                                            + " there: use identifiedByMessageId(), or leave it out")
                                    .formatted(options.idSource(), intake.consumer()));
        }
        Integer deferred = options.maxDeferredCommits();
        if (deferred != null && deferred < intake.maxInFlight()) {
            intake.listener()
                    .onWarning(
                            ("maxDeferredCommits %d is less than maxInFlight %d: one slow message stops the partition while others"
                                            + " that were taken are idle; raise it above maxInFlight")
                                    .formatted(deferred, intake.maxInFlight()));
        }
        if (ClientSettings.startsAtTheEnd(options)) {
            intake.listener()
                    .onWarning(
                            ("auto.offset.reset is latest: without a committed offset, as on the first start or after the group"
                                            + " was away for longer than the broker keeps offsets (offsets.retention.minutes), group '%s'"
                                            + " begins at the end, and messages that were sent before are never handled; use earliest")
                                    .formatted(options.groupId()));
        }
    }
}
