package io.onceflux.kafka;

import io.onceflux.Claims;
import io.onceflux.InvalidSetupException;
import io.onceflux.MessageKey;
import io.onceflux.postgres.OffsetTable;
import io.onceflux.postgres.OffsetTable.Partition;
import io.onceflux.postgres.OffsetTable.Place;
import io.onceflux.postgres.OffsetTable.Step;
import io.onceflux.postgres.Server;
import io.onceflux.postgres.UnfitTableException;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * Claims for topics of Kafka that never grow: a row for each consumer and partition, instead of one for each message. It has the next
 * offset, and is moved first in the transaction of the effect; a message before it is a duplicate.
 *
 * <pre>{@code
 * IdempotentConsumer.<OrderCompleted>named("loyalty")
 *         .identifiedByMessageId()
 *         .claims(OffsetFence.in(OffsetTable.consumerOffsets()))
 * }</pre>
 *
 * <p>Which duplicates it finds: every redelivery of a record. After a crash, a rebalance or an outage, to an instance that lost its
 * partition and does not know, and when the group's offsets are reset or lost. Which it does not: what a producer sends twice is two
 * records, and so is a dead letter that is replayed.
 *
 * <p>What it asks for: deliveries of {@link KafkaDeliveries} with {@link KafkaOptions.Builder#messageIdFromPosition}; no {@code
 * orderedBy}, {@code identifiedBy} or {@code deadLetterTable} of the consumer. Messages of a partition are handled one after the other, or
 * a batch after the other, because a message that overtook another would pass it for good; so the partitions are what runs side by side,
 * and one message that is held up holds up its partition.
 *
 * <p>A partition whose row is not there yet begins with the first message that comes: what is before it counts as done. A dead letter
 * moves the row once it is stored.
 *
 * <p>It stops the consumer, with {@link InvalidSetupException}, where it cannot know what is done: a topic that was deleted and made again,
 * and a log that ends before the fence (truncated, or restored from a backup). {@link #forget} is for who has looked into it. What it cannot
 * see is a log that was truncated and has grown past the fence since.
 */
public final class OffsetFence implements Claims {

    private final OffsetTable table;
    private final Map<String, String> names = new ConcurrentHashMap<>();
    private volatile @Nullable OffsetTable checked;

    private OffsetFence(OffsetTable table) {
        this.table = table;
    }

    /** A fence in a table of PostgreSQL, which {@link OffsetTable#createSql} or {@link OffsetTable#create} makes. */
    public static OffsetFence in(OffsetTable table) {
        return new OffsetFence(Checked.present("table", table));
    }

    @Override
    public Mono<List<String>> verify(Connection connection, String consumer) {
        return table.check(connection)
                .doOnNext(fit -> checked = fit)
                .then(Mono.defer(() -> Server.warnings(connection)))
                .onErrorMap(
                        UnfitTableException.class, e -> new InvalidSetupException(String.valueOf(e.getMessage()), e));
    }

    @Override
    public boolean followSource() {
        return true;
    }

    @Override
    public Mono<Claimed> claim(Connection inTransaction, List<Claim> claims, Duration lockTimeout) {
        return Mono.defer(() -> {
            Map<Partition, List<At>> byPartition = new HashMap<>();
            for (Claim claim : claims) {
                MessageKey key = claim.key();
                Position position = Position.ofId(key.id());
                byPartition
                        .computeIfAbsent(partitionOf(position), none -> new ArrayList<>())
                        .add(new At(position.offset(), key));
            }
            List<Step> steps = byPartition.entrySet().stream()
                    .map(entry -> step(entry.getKey(), entry.getValue()))
                    .toList();
            return usable().move(inTransaction, claims.get(0).key().consumer(), steps, lockTimeout)
                    .map(places -> new Claimed(fresh(places, byPartition)));
        });
    }

    /** A message of a partition that is claimed. */
    private record At(long offset, MessageKey key) {}

    private static Step step(Partition partition, List<At> claimed) {
        long first = claimed.stream().mapToLong(At::offset).min().orElseThrow();
        long last = claimed.stream().mapToLong(At::offset).max().orElseThrow();
        return new Step(partition, first, last + 1);
    }

    private static Set<MessageKey> fresh(List<Place> places, Map<Partition, List<At>> byPartition) {
        Set<MessageKey> fresh = new HashSet<>();
        for (Place before : places) {
            byPartition.getOrDefault(before.partition(), List.of()).stream()
                    .filter(claimed -> claimed.offset() >= before.nextOffset())
                    .forEach(claimed -> fresh.add(claimed.key()));
        }
        return fresh;
    }

    @Override
    public Mono<Boolean> hasAny(Connection connection, String consumer) {
        return places(connection, consumer).map(places -> !places.isEmpty());
    }

    @Override
    public Mono<Boolean> tryOut(Connection inTransaction, MessageKey nobodys, Duration lockTimeout) {
        return Mono.defer(() -> usable().move(
                        inTransaction,
                        nobodys.consumer(),
                        List.of(new Step(new Partition("", nobodys.id(), 0), 0, 1)),
                        lockTimeout)
                .map(places -> !places.isEmpty()));
    }

    /**
     * Removes what is known of a topic. For a topic that was made anew on purpose, or whose log was: its next messages are handled whatever
     * their offset, and so are those that come again. Not while the consumer runs.
     *
     * @return how many partitions were known; the database's error
     */
    public Mono<Long> forget(ConnectionFactory connections, String consumer, String topic) {
        return Mono.usingWhen(
                connections.create(), connection -> table.forget(connection, consumer, topic), Connection::close);
    }

    /** Moves the fence behind a message that is done without a claim: its dead letter is stored. */
    Mono<Void> pass(Connection connection, String consumer, Position position, Duration lockTimeout) {
        return Mono.defer(() -> usable().move(
                        connection,
                        consumer,
                        List.of(new Step(partitionOf(position), position.offset(), position.offset() + 1)),
                        lockTimeout)
                .then());
    }

    /** Where all partitions of a consumer are. */
    Mono<List<Place>> places(Connection connection, String consumer) {
        return Mono.defer(() -> usable().places(connection, consumer));
    }

    /** Notes the name of a topic, which positions do not have. */
    void knows(Collection<Partition> partitions) {
        partitions.forEach(partition -> names.put(partition.topicId(), partition.topic()));
    }

    private Partition partitionOf(Position position) {
        String name = names.get(position.topicId());
        if (name == null) {
            throw new IllegalStateException(
                    "the topic with id %s is none that this fence has seen".formatted(position.topicId()));
        }
        return new Partition(name, position.topicId(), position.partition());
    }

    private OffsetTable usable() {
        OffsetTable usable = checked;
        if (usable == null) {
            throw new IllegalStateException("the table of offsets has not been verified");
        }
        return usable;
    }

    @Override
    public String toString() {
        return "the offset fence " + table;
    }
}
