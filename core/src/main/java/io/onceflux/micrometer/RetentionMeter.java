package io.onceflux.micrometer;

import io.micrometer.common.docs.KeyName;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.docs.MeterDocumentation;

/** Every meter of a retention, and its tag. */
public enum RetentionMeter implements MeterDocumentation {

    /** Claims that were removed; those of dropped partitions about. */
    REMOVED("onceflux.retention.removed", Meter.Type.COUNTER),

    /** The share of the run that is under way, from 0 to 1; 1 while there is none. Of a run that has failed it stays where that was. */
    DONE("onceflux.retention.done", Meter.Type.GAUGE),

    /** Runs that came to their end. Where several instances share a table, one of them runs: look at the sum. */
    RUNS("onceflux.retention.runs", Meter.Type.COUNTER),

    /** Runs that have failed. */
    FAILURES("onceflux.retention.failures", Meter.Type.COUNTER);

    private final String name;
    private final Meter.Type type;

    RetentionMeter(String name, Meter.Type type) {
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

    @Override
    public KeyName[] getKeyNames() {
        return Tag.values();
    }

    /** The tag of the meters. */
    public enum Tag implements KeyName {

        /** The claim table's name. */
        TABLE("table");

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
