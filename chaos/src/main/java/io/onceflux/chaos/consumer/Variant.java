package io.onceflux.chaos.consumer;

import io.onceflux.Claims;
import io.onceflux.ConsumerBuilder;
import io.onceflux.Delivery;
import io.onceflux.Settlement;
import io.onceflux.kafka.OffsetFence;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.OffsetTable;
import io.r2dbc.spi.ConnectionFactory;
import reactor.core.publisher.Mono;

/** The consumers that are tested, and the three that must be caught. These differ in nothing but their fault. */
public enum Variant {
    /** Claim, effect and commit in one transaction, then the acknowledgement. */
    ONCEFLUX,
    /** The same with a row for each partition of Kafka instead of one for each message: what the producer sends twice is two messages. */
    OFFSET_FENCE,
    /** Acknowledges when the effect's statements are done, before the COMMIT. A crash in between loses the message. */
    ACKS_BEFORE_COMMIT,
    /** The claim commits alone, before the effect. A crash in between, or a rollback, loses the message. */
    CLAIMS_ALONE,
    /** Asks whether the message was credited, and credits if not. Two copies that meet are both credited. */
    CHECK_THEN_ACT;

    /**
     * An order and the delivery that brought it. Only a faulty consumer needs to know the latter.
     *
     * @param arrival counts the deliveries of the process from 1
     */
    record Incoming(Order order, Delivery<byte[]> delivery, long arrival) {

        static Delivery<Incoming> from(long before, Delivery<byte[]> delivery) {
            return delivery.map(body -> new Incoming(Order.decode(body), delivery, before + 1));
        }
    }

    /** Whether a message is known by its place in the topic. */
    public boolean goesByPosition() {
        return this == OFFSET_FENCE;
    }

    ConsumerBuilder<Incoming> configure(ConsumerBuilder<Incoming> consumer, ConnectionFactory beside) {
        if (!goesByPosition()) {
            consumer.orderedBy(incoming -> incoming.order().customer());
        }
        return switch (this) {
            case ONCEFLUX -> consumer.effect((incoming, db) -> Credit.apply(incoming.order(), db));
            case OFFSET_FENCE ->
                consumer.effect((incoming, db) -> Credit.apply(incoming.order(), db))
                        .claims(OffsetFence.in(OffsetTable.consumerOffsets()));
            case ACKS_BEFORE_COMMIT ->
                consumer.effect((incoming, db) -> Credit.apply(incoming.order(), db)
                        .then(incoming.delivery().settle(Settlement.acknowledge()))
                        .then(Mono.delay(incoming.order().work())));
            case CLAIMS_ALONE ->
                consumer.effect((incoming, db) -> Credit.apply(incoming.order(), db))
                        .claims(new ClaimsAlone(Claims.in(ClaimTable.processedMessages()), beside));
            case CHECK_THEN_ACT ->
                consumer.effect((incoming, db) -> Credit.apply(incoming.order(), db))
                        .claims(new CheckThenAct());
        };
    }
}
