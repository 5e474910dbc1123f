package io.onceflux;

import static io.onceflux.Consumers.batches;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.setBased;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler.FirstMatchingCompositeObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.observation.contextpropagation.ObservationThreadLocalAccessor;
import io.micrometer.tracing.TraceContext;
import io.micrometer.tracing.handler.DefaultTracingObservationHandler;
import io.micrometer.tracing.handler.PropagatingReceiverTracingObservationHandler;
import io.micrometer.tracing.handler.PropagatingSenderTracingObservationHandler;
import io.micrometer.tracing.handler.TracingObservationHandler.TracingContext;
import io.micrometer.tracing.otel.bridge.OtelCurrentTraceContext;
import io.micrometer.tracing.otel.bridge.OtelPropagator;
import io.micrometer.tracing.otel.bridge.OtelTracer;
import io.onceflux.micrometer.BatchSpanHandler;
import io.onceflux.micrometer.MessageObservations;
import io.onceflux.micrometer.TraceHeaders;
import io.onceflux.outbox.Outbox;
import io.onceflux.outbox.OutboxEntry;
import io.onceflux.outbox.OutboxMessage;
import io.onceflux.outbox.Relay;
import io.onceflux.postgres.OutboxTable;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.ContextPropagators;
import io.opentelemetry.sdk.testing.exporter.InMemorySpanExporter;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.LinkData;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import io.r2dbc.proxy.ProxyConnectionFactory;
import io.r2dbc.proxy.observation.ObservationProxyExecutionListener;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/** With the tracer of OpenTelemetry, through Micrometer's bridge, as a service has it. */
class TracingTest {

    private static final String PARENT_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
    private static final String PARENT_SPAN = "00f067aa0ba902b7";
    private static final String TRACEPARENT = "00-%s-%s-01".formatted(PARENT_TRACE, PARENT_SPAN);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final InMemorySpanExporter exporter = InMemorySpanExporter.create();

    @AutoClose
    private final SdkTracerProvider provider = SdkTracerProvider.builder()
            .addSpanProcessor(SimpleSpanProcessor.create(exporter))
            .build();

    private final ObservationRegistry registry = observations();
    private final List<Seen> seen = new CopyOnWriteArrayList<>();

    /** The span that the effect of a message has in its context, and the key. */
    private record Seen(
            String order,
            String traceId,
            String spanId,
            @Nullable MessageKey key) {}

    private ObservationRegistry observations() {
        assertThat(Context.root()).isNotNull(); // It reads files when it is looked at first: not on an event loop.
        Tracer otel = provider.get("test");
        OtelCurrentTraceContext current = new OtelCurrentTraceContext();
        OtelTracer tracer = new OtelTracer(otel, current, event -> {});
        OtelPropagator propagator =
                new OtelPropagator(ContextPropagators.create(W3CTraceContextPropagator.getInstance()), otel);
        ObservationRegistry made = ObservationRegistry.create();
        made.observationConfig()
                .observationHandler(new FirstMatchingCompositeObservationHandler(
                        new BatchSpanHandler(tracer),
                        new PropagatingReceiverTracingObservationHandler<>(tracer, propagator),
                        new PropagatingSenderTracingObservationHandler<>(tracer, propagator),
                        new DefaultTracingObservationHandler(tracer)));
        return made;
    }

    private Mono<Void> effect(Order order, DatabaseClient db) {
        return Mono.deferContextual(context -> {
            seen.add(seenBy(order.id(), context));
            return order.apply(db);
        });
    }

    private static Seen seenBy(String order, ContextView context) {
        Observation observation = context.get(ObservationThreadLocalAccessor.KEY);
        TraceContext trace = Objects.requireNonNull(
                        Objects.requireNonNull(observation.getContextView().<TracingContext>get(TracingContext.class))
                                .getSpan())
                .context();
        return new Seen(order, trace.traceId(), trace.spanId(), context.getOrDefault(MessageKey.class, null));
    }

    private ConsumerBuilder<Order> observed() {
        return orders(this::effect).observer(MessageObservations.in(registry));
    }

    private ConnectionFactory pool() {
        return database.pool(10);
    }

    @Test
    void aTraceGoesOnFromTheMessagesHeaderIntoItsEffect() {
        assertThat(run(observed().build(pool()), List.of(traced("1"))))
                .singleElement()
                .isInstanceOf(Outcome.Applied.class);

        SpanData span = onlySpan();
        assertThat(span.getName()).isEqualTo("process loyalty");
        assertThat(span.getKind()).isEqualTo(SpanKind.CONSUMER);
        assertThat(span.getTraceId()).isEqualTo(PARENT_TRACE);
        assertThat(span.getParentSpanId()).isEqualTo(PARENT_SPAN);
        assertThat(attributes(span))
                .containsEntry("consumer", "loyalty")
                .containsEntry("outcome", "applied")
                .containsEntry("message.id", "1")
                .containsEntry("message.origin", "test delivery 1");
        assertThat(seen).containsExactly(new Seen("1", PARENT_TRACE, span.getSpanId(), new MessageKey("loyalty", "1")));
    }

    @Test
    void statementsOfClaimAndEffectAreInTheTrace() {
        ConnectionFactory pool = pool();
        ConnectionFactory watched = ProxyConnectionFactory.builder(pool)
                .listener(new ObservationProxyExecutionListener(registry, pool, "r2dbc:postgresql://localhost/test"))
                .build();
        IdempotentConsumer<Order> consumer = observed().build(watched);
        run(consumer, List.of(traced("1"))); // After it the start is over.
        exporter.reset();
        run(consumer, List.of(traced("2")));

        List<SpanData> queries = exporter.getFinishedSpanItems().stream()
                .filter(span -> span.getName().equals("query"))
                .toList();
        assertThat(queries)
                .hasSizeGreaterThanOrEqualTo(3) // The claim and two statements of the effect.
                .extracting(SpanData::getParentSpanId)
                .containsOnly(spanOf("2").getSpanId());
        assertThat(queries)
                .anySatisfy(span -> assertThat(attributes(span).toString()).contains("processed_messages"))
                .anySatisfy(span -> assertThat(attributes(span).toString()).contains("point_ledger"));
    }

    @Test
    void aMessageWithoutAHeaderHasATraceOfItsOwnWhateverTheThreadIsBusyWith() {
        IdempotentConsumer<Order> consumer = observed().build(pool());
        Observation busy = Observation.start("busy", registry);
        busy.scoped(() -> {
            assertThat(run(consumer, List.of(TestDelivery.order("1"), TestDelivery.order("2"))))
                    .hasSize(2);
        });

        List<SpanData> spans = exporter.getFinishedSpanItems();
        assertThat(spans)
                .hasSize(2)
                .allSatisfy(span -> assertThat(span.getParentSpanId()).isEqualTo("0000000000000000"));
        assertThat(spans).extracting(SpanData::getTraceId).doesNotHaveDuplicates();
        assertThat(seen).extracting(Seen::traceId).containsExactlyInAnyOrderElementsOf(traceIds(spans));
        busy.stop();
    }

    private static List<String> traceIds(List<SpanData> spans) {
        return spans.stream().map(SpanData::getTraceId).toList();
    }

    @Test
    void aBatchLinksToTheSpansOfAllItsMessages() {
        Plug plug = new Plug();
        IdempotentConsumer<Order> consumer = batches(100, plug.then(this::effect))
                .observer(MessageObservations.in(registry))
                .build(pool());
        plug.run(
                consumer,
                plug.before(List.of(traced("1"), traced("2"), TestDelivery.order("3"), TestDelivery.order("3"))));

        SpanData batch = named("batch loyalty");
        List<SpanData> messages = exporter.getFinishedSpanItems().stream()
                .filter(span -> span.getName().equals("process loyalty"))
                .filter(span -> !"plug".equals(attributes(span).get("message.id")))
                .toList();
        assertThat(messages).hasSize(4);
        assertThat(batch.getLinks())
                .extracting(LinkData::getSpanContext)
                .containsExactlyInAnyOrderElementsOf(
                        messages.stream().map(SpanData::getSpanContext).toList());
        assertThat(batch.getTraceId()).isNotIn(traceIds(messages));
        assertThat(attributes(batch)).containsEntry("batch.size", "4");
        assertThat(messages)
                .extracting(span -> attributes(span).get("outcome"))
                .containsExactlyInAnyOrder("applied", "applied", "applied", "duplicate");
        for (String order : List.of("1", "2")) { // Each effect is in the trace of its own message.
            assertThat(seen)
                    .filteredOn(one -> one.order().equals(order))
                    .singleElement()
                    .satisfies(one -> {
                        assertThat(one.traceId()).isEqualTo(PARENT_TRACE);
                        assertThat(one.spanId()).isEqualTo(spanOf(order).getSpanId());
                    });
        }
    }

    @Test
    void aBatchEffectIsInTheTraceOfItsBatch() {
        Plug plug = new Plug();
        IdempotentConsumer<Order> consumer = setBased(
                        100,
                        plug.thenAll((orders, db) -> Mono.deferContextual(context -> {
                            seen.add(seenBy("all", context));
                            return Order.applyAll(orders, db);
                        })))
                .observer(MessageObservations.in(registry))
                .build(pool());
        plug.run(consumer, plug.before(List.of(traced("1"), traced("2"))));

        SpanData batch = named("batch loyalty");
        assertThat(seen).hasSize(2);
        assertThat(seen.get(1).spanId()).isEqualTo(batch.getSpanId());
        assertThat(seen.get(1).key()).isNull();
    }

    @Test
    void failuresRetriesAndWhatWasLeftAreSeen() {
        IdempotentConsumer<Order> consumer = orders((order, db) -> Mono.error(new IllegalStateException("sick")))
                .observer(MessageObservations.in(registry))
                .build(pool());
        run(consumer, List.of(traced("1")));
        TestDelivery<Order> lost = TestDelivery.order("2");
        lost.channelLost();
        run(consumer, List.of(lost));

        assertThat(attributes(spanOf("1"))).containsEntry("outcome", "failed");
        assertThat(spanOf("1").getEvents())
                .extracting(event -> event.getName())
                .containsExactly("again after EFFECT", "again after EFFECT", "exception");
        await().untilAsserted(() -> assertThat(exporter.getFinishedSpanItems())
                .filteredOn(span -> "test delivery 2".equals(attributes(span).get("message.origin")))
                .singleElement()
                .satisfies(span -> assertThat(attributes(span)).containsEntry("outcome", "none")));
    }

    /** Of a webhook: the server's span goes on, and not what the sender wrote into a header. */
    @Test
    void processGoesOnFromTheCallersObservation() {
        IdempotentConsumer<Order> consumer = observed().build(pool());
        Observation request = Observation.start("request", registry);
        Outcome outcome = consumer.process(traced("1"))
                .contextWrite(context -> context.put(ObservationThreadLocalAccessor.KEY, request))
                .block(Duration.ofSeconds(30));
        request.stop();

        assertThat(outcome).isInstanceOf(Outcome.Applied.class);
        assertThat(spanOf("1").getParentSpanId()).isEqualTo(named("request").getSpanId());
        assertThat(spanOf("1").getTraceId()).isNotEqualTo(PARENT_TRACE);

        consumer.process(traced("2")).then().block(Duration.ofSeconds(30));
        assertThat(spanOf("2").getTraceId()).isEqualTo(PARENT_TRACE);
    }

    @Test
    void whatIsAppendedToAnOutboxGoesOnFromTheEffect() {
        OutboxTable table = OutboxTable.outbox();
        ConnectionFactory pool = pool();
        table.create(pool).block(Duration.ofSeconds(30));
        Outbox outbox = Outbox.in(table).headers(TraceHeaders.in(registry));
        IdempotentConsumer<Order> consumer = orders((order, db) -> effect(order, db)
                        .then(outbox.append(
                                db,
                                OutboxEntry.of("receipt", order.customer(), new byte[0])
                                        .header("a", "b"))))
                .observer(MessageObservations.in(registry))
                .build(pool);
        List<OutboxMessage> sent = new CopyOnWriteArrayList<>();
        Relay relay = Relay.of(outbox)
                .to("receipt", message -> Mono.fromRunnable(() -> sent.add(message)))
                .build(pool);
        run(consumer, List.of(traced("1")));
        relay.run().next().then().block(Duration.ofSeconds(30));

        SpanData append = named("append receipt");
        assertThat(append.getKind()).isEqualTo(SpanKind.PRODUCER);
        assertThat(append.getTraceId()).isEqualTo(PARENT_TRACE);
        assertThat(append.getParentSpanId()).isEqualTo(spanOf("1").getSpanId());
        assertThat(sent)
                .singleElement()
                .satisfies(message -> assertThat(message.headers())
                        .containsEntry("a", "b")
                        .containsEntry("traceparent", "00-%s-%s-01".formatted(PARENT_TRACE, append.getSpanId())));
    }

    @Test
    void anObserverThatThrowsDoesNotTouchTheMessage() {
        HandlingObserver broken = (consumer, deliveries, caller) -> {
            throw new AssertionError("broken");
        };
        TestDelivery<Order> delivery = traced("1");
        run(observed().observer(broken).build(pool()), List.of(delivery));

        assertThat(delivery.isAcknowledged()).isTrue();
        assertThat(onlySpan().getTraceId()).isEqualTo(PARENT_TRACE);
    }

    private static TestDelivery<Order> traced(String id) {
        return TestDelivery.order(id).with("traceparent", TRACEPARENT);
    }

    private SpanData onlySpan() {
        assertThat(exporter.getFinishedSpanItems()).hasSize(1);
        return exporter.getFinishedSpanItems().get(0);
    }

    /** That of a batch ends behind the outcomes of its messages. */
    private SpanData named(String name) {
        await().untilAsserted(() -> assertThat(exporter.getFinishedSpanItems())
                .filteredOn(span -> span.getName().equals(name))
                .hasSize(1));
        return exporter.getFinishedSpanItems().stream()
                .filter(span -> span.getName().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private SpanData spanOf(String id) {
        return exporter.getFinishedSpanItems().stream()
                .filter(span -> id.equals(attributes(span).get("message.id")))
                .findFirst()
                .orElseThrow();
    }

    private static Map<String, String> attributes(SpanData span) {
        Map<String, String> all = new HashMap<>();
        span.getAttributes().forEach((AttributeKey<?> key, Object value) -> all.put(key.getKey(), value.toString()));
        return all;
    }
}
