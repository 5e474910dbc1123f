package io.onceflux.micrometer;

import io.micrometer.observation.Observation;
import java.util.List;

/**
 * The context of the observation of several messages that are handled together. It belongs to the trace of none of them;
 * {@link BatchSpanHandler} links its span to theirs.
 */
public final class BatchContext extends Observation.Context {

    private final List<Observation> messages;

    BatchContext(List<Observation> messages) {
        this.messages = List.copyOf(messages);
    }

    /** The observations of the messages, which have been started. */
    public List<Observation> messages() {
        return messages;
    }
}
