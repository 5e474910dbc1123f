package io.onceflux.micrometer;

import io.micrometer.common.docs.KeyName;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.docs.MeterDocumentation;

/** Every meter of a relay and its outbox, and their tags. */
public enum RelayMeter implements MeterDocumentation {

    /**
     * Entries that have arrived, and how long after they were appended that was written down, by the clock of the database to begin with and
     * that of this process at the end.
     */
    SENT("onceflux.relay.sent", Meter.Type.TIMER) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.TABLE, Tag.KIND});
        }
    },

    /** Times that an entry could not be sent, and is tried again. */
    FAILURES("onceflux.relay.failures", Meter.Type.COUNTER) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.TABLE, Tag.KIND});
        }
    },

    /** Entries that were parked. Worth an alarm: somebody has to look at them. */
    PARKED("onceflux.relay.parked", Meter.Type.COUNTER) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.TABLE, Tag.KIND});
        }
    },

    /** Entries of all kinds that are to be sent, as they were seen at most half a minute ago. */
    OUTBOX_PENDING("onceflux.outbox.pending", Meter.Type.GAUGE) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.TABLE});
        }
    },

    /** Entries of all kinds that are parked now. */
    OUTBOX_PARKED("onceflux.outbox.parked", Meter.Type.GAUGE) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.TABLE});
        }
    },

    /** How long the oldest entry that is to be sent has been waiting, in the registry's unit of time; 0 without one. */
    OUTBOX_AGE("onceflux.outbox.age", Meter.Type.GAUGE) {
        @Override
        public KeyName[] getKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.TABLE});
        }
    };

    private final String name;
    private final Meter.Type type;

    RelayMeter(String name, Meter.Type type) {
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

        /** The outbox table's name. */
        TABLE("table"),

        /** What {@link io.onceflux.outbox.Relay.Builder#to} was given a target for. */
        KIND("kind");

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
