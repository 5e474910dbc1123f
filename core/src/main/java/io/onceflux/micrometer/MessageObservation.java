package io.onceflux.micrometer;

import io.micrometer.common.docs.KeyName;
import io.micrometer.observation.docs.ObservationDocumentation;

/** Every observation of {@link MessageObservations} and {@link TraceHeaders}, and its key values. */
public enum MessageObservation implements ObservationDocumentation {

    /** The handling of a message, from its turn to its outcome. Its context is a {@link MessageContext}. */
    PROCESS("onceflux.process") {
        @Override
        public KeyName[] getLowCardinalityKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER, Tag.OUTCOME});
        }

        @Override
        public KeyName[] getHighCardinalityKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.MESSAGE_ID, Tag.ORIGIN});
        }
    },

    /** What several messages have in common: their claims and COMMIT, and a {@link io.onceflux.BatchEffect}. Its context is a {@link BatchContext}. */
    BATCH("onceflux.batch") {
        @Override
        public KeyName[] getLowCardinalityKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.CONSUMER});
        }

        @Override
        public KeyName[] getHighCardinalityKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.SIZE});
        }
    },

    /** An entry is appended to an {@link io.onceflux.outbox.Outbox}; whoever receives it goes on from here. */
    APPEND("onceflux.append") {
        @Override
        public KeyName[] getLowCardinalityKeyNames() {
            return KeyName.merge(new KeyName[] {Tag.KIND});
        }

        @Override
        public KeyName[] getHighCardinalityKeyNames() {
            return KeyName.merge();
        }
    };

    private final String name;

    MessageObservation(String name) {
        this.name = name;
    }

    @Override
    public String getName() {
        return name;
    }

    /** The key values of the observations. */
    public enum Tag implements KeyName {

        /** The consumer's name. */
        CONSUMER("consumer"),

        /**
         * {@code applied}, {@code duplicate}, {@code stale}, {@code conflict} or {@code failed}; {@code none} for a message that was left to
         * redelivery.
         */
        OUTCOME("outcome"),

        /** The outbox entry's kind. */
        KIND("kind"),

        /** The message's id, once it is known. */
        MESSAGE_ID("message.id"),

        /** Where the message came from: {@link io.onceflux.Delivery#origin}. */
        ORIGIN("message.origin"),

        /** How many messages were begun together. */
        SIZE("batch.size");

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
