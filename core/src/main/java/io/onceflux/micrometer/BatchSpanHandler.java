package io.onceflux.micrometer;

import io.micrometer.observation.Observation;
import io.micrometer.tracing.Link;
import io.micrometer.tracing.Span;
import io.micrometer.tracing.Tracer;
import io.micrometer.tracing.handler.TracingObservationHandler;

/**
 * Makes the span of messages that are handled together, in a trace of its own that is linked to the spans of all of them. Needs Micrometer
 * Tracing. It has to come before the handlers that take any context:
 *
 * <pre>{@code
 * registry.observationConfig().observationHandler(new FirstMatchingCompositeObservationHandler(
 *         new BatchSpanHandler(tracer),
 *         new PropagatingReceiverTracingObservationHandler<>(tracer, propagator),
 *         new PropagatingSenderTracingObservationHandler<>(tracer, propagator),
 *         new DefaultTracingObservationHandler(tracer)));
 * }</pre>
 */
public final class BatchSpanHandler implements TracingObservationHandler<BatchContext> {

    private final Tracer tracer;

    /** @param tracer that makes the spans */
    public BatchSpanHandler(Tracer tracer) {
        this.tracer = tracer;
    }

    @Override
    public boolean supportsContext(Observation.Context context) {
        return context instanceof BatchContext;
    }

    @Override
    public void onStart(BatchContext context) {
        Span.Builder builder =
                tracer.spanBuilder().setNoParent().kind(Span.Kind.CONSUMER).name(getSpanName(context));
        for (Observation message : context.messages()) {
            TracingContext ofMessage = message.getContextView().get(TracingContext.class);
            Span span = ofMessage == null ? null : ofMessage.getSpan();
            if (span != null) {
                builder = builder.addLink(new Link(span.context()));
            }
        }
        getTracingContext(context).setSpan(builder.start());
    }

    @Override
    public void onStop(BatchContext context) {
        Span span = getRequiredSpan(context);
        span.name(getSpanName(context));
        tagSpan(context, span);
        endSpan(context, span);
    }

    @Override
    public Tracer getTracer() {
        return tracer;
    }
}
