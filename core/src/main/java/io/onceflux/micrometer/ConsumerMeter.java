package io.onceflux.micrometer;

import io.micrometer.common.docs.KeyName;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.docs.MeterDocumentation;

/** Every meter of a consumer, and its tags. All values of all tags are known in advance, whatever the messages are. */
public enum ConsumerMeter implements MeterDocumentation {

    /**
     * Messages that have their outcome, and how long each took from its first attempt. The share of {@code duplicate} is the share of
     * messages that arrived again.
     */
    MESSAGES("onceflux.messages", Meter.Type.TIMER) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER, Tag.OUTCOME});
        }
    },

    /**
     * Attempts whose claims were made, and how long that took. It includes waiting for another transaction that has one of the claims: a
     * copy of a message that is at work elsewhere.
     */
    CLAIMS("onceflux.claims", Meter.Type.TIMER) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER});
        }
    },

    /** How many messages are attempted in one transaction: 1, unless the consumer has a {@code maxBatch} and messages queue up. */
    BATCH_SIZE("onceflux.batch.size", Meter.Type.DISTRIBUTION_SUMMARY) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER});
        }

        @Override
        public String getBaseUnit() {
            return "messages";
        }
    },

    /** How many messages wait for each lane now. One lane with much more than the others has a hot key. */
    QUEUED("onceflux.lane.queued", Meter.Type.GAUGE) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER, Tag.LANE});
        }
    },

    /** How many messages each lane is at work on, holds or settles now. */
    IN_FLIGHT("onceflux.lane.in.flight", Meter.Type.GAUGE) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER, Tag.LANE});
        }
    },

    /** Messages that were duplicates by {@link io.onceflux.RecentKeys}: so many claims have been saved. They are among the {@link #MESSAGES}, too. */
    RECENT_KEYS("onceflux.recent.keys", Meter.Type.COUNTER) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER});
        }
    },

    /** Attempts that failed and are made again, by the kind of the failure and the class of its SQLSTATE. */
    RETRIES("onceflux.retries", Meter.Type.COUNTER) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER, Tag.KIND, Tag.SQL_STATE_CLASS});
        }
    },

    /** COMMITs that were not answered: the claim told what had happened when it was tried again. */
    UNKNOWN_COMMITS("onceflux.commits.unknown", Meter.Type.COUNTER) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER});
        }
    },

    /** Answers that the source has taken. */
    SETTLEMENTS("onceflux.settlements", Meter.Type.COUNTER) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER, Tag.SETTLEMENT});
        }
    },

    /** Answers that the source could not be given, so that the message arrives again; for dead letters, each try. */
    SETTLEMENT_FAILURES("onceflux.settlements.failed", Meter.Type.COUNTER) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER, Tag.SETTLEMENT});
        }
    },

    /** Deliveries that were left to redelivery without an outcome: at a stop, or because their channel was lost. */
    DROPPED("onceflux.deliveries.dropped", Meter.Type.COUNTER) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER});
        }
    },

    /** How many times a source has lost its broker, or was cut off by it. */
    SOURCE_LOSSES("onceflux.source.losses", Meter.Type.COUNTER) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER});
        }
    },

    /** 1 while messages are held for this kind of failure, else 0. {@code broken_setup} is worth an alarm. */
    HELD("onceflux.held", Meter.Type.GAUGE) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER, Tag.KIND});
        }
    };

    private final String name;
    private final Meter.Type type;

    ConsumerMeter(String name, Meter.Type type) {
        this.name = name;
        this.type = type;
    }

    @Override
    public String getName() {
        return name;
    }

    @Override
    public Meter.Type getType() {
        return type;
    }

    /** The tags of the meters. */
    public enum Tag implements KeyName {

        /** The consumer's name. */
        CONSUMER("consumer"),

        /** {@code applied}, {@code duplicate}, {@code stale}, {@code conflict} or {@code failed}. */
        OUTCOME("outcome"),

        /** The {@link io.onceflux.FailureKind} in lower case. */
        KIND("kind"),

        /** The first two characters of PostgreSQL's SQLSTATE; {@code none} without one, {@code other} for one that is not PostgreSQL's. */
        SQL_STATE_CLASS("sqlstate.class"),

        /** From 0 to one less than the consumer has lanes. */
        LANE("lane"),

        /** {@code acknowledge}, {@code requeue} or {@code dead_letter}. */
        SETTLEMENT("settlement");

        private final String key;

        Tag(String key) {
            this.key = key;
        }

        @Override
        public String asString() {
            return key;
        }
    }
}
