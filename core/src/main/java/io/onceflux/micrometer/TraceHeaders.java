package io.onceflux.micrometer;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.observation.transport.Kind;
import io.micrometer.observation.transport.SenderContext;
import io.onceflux.micrometer.MessageObservation.Tag;
import io.onceflux.outbox.OutboxEntry;
import io.onceflux.outbox.OutboxHeaders;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import reactor.util.context.ContextView;

/**
 * Sends the trace of an effect on with what it appends to an outbox, in the headers that the tracer writes, such as the {@code traceparent} of
 * W3C. The effect's consumer has to be observed ({@link MessageObservations}).
 *
 * <pre>{@code
 * Outbox outbox = Outbox.in(OutboxTable.outbox()).headers(TraceHeaders.in(registry));
 * }</pre>
 */
public final class TraceHeaders implements OutboxHeaders {

    private final ObservationRegistry registry;

    private TraceHeaders(ObservationRegistry registry) {
        this.registry = registry;
    }

    /** Of the observations in a registry. */
    public static TraceHeaders in(ObservationRegistry registry) {
        return new TraceHeaders(registry);
    }

    @Override
    public Map<String, String> of(OutboxEntry entry, ContextView context) {
        Observation parent = MessageObservations.observationIn(context);
        if (parent == null) {
            return Map.of();
        }
        Map<String, String> headers = new HashMap<>();
        Observation.createNotStarted(
                        MessageObservation.APPEND.getName(),
                        () -> {
                            SenderContext<Map<String, String>> sender = new SenderContext<>(
                                    (carrier, name, value) ->
                                            Objects.requireNonNull(carrier).put(name, value),
                                    Kind.PRODUCER);
                            sender.setCarrier(headers);
                            return sender;
                        },
                        registry)
                .parentObservation(parent)
                .contextualName("append " + entry.kind())
                .lowCardinalityKeyValue(Tag.KIND.asString(), entry.kind())
                .start()
                .stop();
        return headers;
    }
}
