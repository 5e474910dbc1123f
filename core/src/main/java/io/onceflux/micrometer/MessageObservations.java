package io.onceflux.micrometer;

import io.micrometer.observation.NullObservation;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.observation.contextpropagation.ObservationThreadLocalAccessor;
import io.onceflux.Delivery;
import io.onceflux.HandlingObserver;
import io.onceflux.MessageKey;
import io.onceflux.micrometer.MessageObservation.Tag;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.util.context.ContextView;

/**
 * Observes the handling of each message, for traces and whatever else listens to an {@link ObservationRegistry}. One may be given to any number
 * of consumers. The observations are those of {@link MessageObservation}.
 *
 * <pre>{@code
 * IdempotentConsumer.<Order>named("loyalty").observer(MessageObservations.in(registry))
 * }</pre>
 *
 * <p>A message's trace goes on from its headers, such as the {@code traceparent} of W3C; that of a message given to
 * {@link io.onceflux.IdempotentConsumer#process} from the caller's observation, where there is one in the Reactor context. The effect has the
 * observation in its Reactor context, where WebClient, r2dbc-proxy and the like look for it, and the {@link MessageKey} by its class. With
 * {@code Hooks.enableAutomaticContextPropagation()} and Micrometer's context-propagation, both are in the thread-locals too: the current span, and
 * {@link io.onceflux.LogContext} in the MDC.
 *
 * <p>Messages that are handled together have an observation each, which the effect of that message sees, and one in common for the
 * statements of all of them. {@link BatchSpanHandler} links that to theirs.
 */
public final class MessageObservations implements HandlingObserver {

    private final ObservationRegistry registry;

    private MessageObservations(ObservationRegistry registry) {
        this.registry = registry;
    }

    /** Observations in a registry. */
    public static MessageObservations in(ObservationRegistry registry) {
        return new MessageObservations(registry);
    }

    @Override
    public Handling begin(String consumer, List<? extends Delivery<?>> deliveries, ContextView caller) {
        Observation callers = observationIn(caller);
        // What this thread was busy with has nothing to do with these messages.
        return Objects.requireNonNull(
                new NullObservation(registry).start().scoped(() -> begin(consumer, deliveries, callers)));
    }

    private Handling begin(String consumer, List<? extends Delivery<?>> deliveries, @Nullable Observation callers) {
        List<Observation> messages = new ArrayList<>(deliveries.size());
        for (Delivery<?> delivery : deliveries) {
            messages.add(ofMessage(consumer, delivery, callers).start());
        }
        return new ObservedHandling(
                deliveries,
                messages,
                messages.size() == 1 ? null : ofBatch(consumer, messages).start());
    }

    private Observation ofMessage(String consumer, Delivery<?> delivery, @Nullable Observation callers) {
        Observation observation = callers == null
                ? Observation.createNotStarted(
                        MessageObservation.PROCESS.getName(), () -> new MessageContext(consumer, delivery), registry)
                : Observation.createNotStarted(MessageObservation.PROCESS.getName(), registry)
                        .parentObservation(callers);
        return observation
                .contextualName("process " + consumer)
                .lowCardinalityKeyValue(Tag.CONSUMER.asString(), consumer)
                .lowCardinalityKeyValue(Tag.OUTCOME.asString(), "none")
                .highCardinalityKeyValue(Tag.ORIGIN.asString(), delivery.origin());
    }

    private Observation ofBatch(String consumer, List<Observation> messages) {
        return Observation.createNotStarted(
                        MessageObservation.BATCH.getName(), () -> new BatchContext(messages), registry)
                .contextualName("batch " + consumer)
                .lowCardinalityKeyValue(Tag.CONSUMER.asString(), consumer)
                .highCardinalityKeyValue(Tag.SIZE.asString(), Integer.toString(messages.size()));
    }

    static @Nullable Observation observationIn(ContextView context) {
        return context.getOrDefault(ObservationThreadLocalAccessor.KEY, null);
    }
}
