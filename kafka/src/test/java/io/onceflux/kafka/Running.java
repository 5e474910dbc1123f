package io.onceflux.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.ConsumerBuilder;
import io.onceflux.Delivery;
import io.onceflux.Effect;
import io.onceflux.FailurePolicy;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.RecordingListener;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;

/** A consumer that runs against a topic, as a service would run it. */
final class Running implements AutoCloseable {

    final RecordingListener listener = new RecordingListener();
    final List<Outcome> outcomes = new CopyOnWriteArrayList<>();
    final AtomicReference<@Nullable Throwable> error = new AtomicReference<>();
    final IdempotentConsumer<Order> consumer;
    private final Disposable subscription;
    private volatile boolean completed;

    static Running start(KafkaOptions options, ConnectionFactory connections, Effect<Order> effect) {
        return start(options, connections, effect, builder -> builder);
    }

    static Running start(
            KafkaOptions options,
            ConnectionFactory connections,
            Effect<Order> effect,
            UnaryOperator<ConsumerBuilder<Order>> settings) {
        return new Running(options, connections, effect, settings);
    }

    private Running(
            KafkaOptions options,
            ConnectionFactory connections,
            Effect<Order> effect,
            UnaryOperator<ConsumerBuilder<Order>> settings) {
        consumer = settings.apply(IdempotentConsumer.<Order>named("loyalty")
                        .identifiedByMessageId()
                        .lanes(4)
                        .failurePolicy(FailurePolicy.builder()
                                .backoff(Duration.ofMillis(5), Duration.ofMillis(200))
                                .build())
                        .listener(listener)
                        .effect(effect))
                .build(connections);
        subscription = KafkaDeliveries.from(options)
                .map(Delivery.<byte[], Order>decoding(body -> Order.of(new String(body, UTF_8))))
                .transform(consumer)
                .subscribe(outcomes::add, error::set, () -> completed = true);
    }

    boolean hasCompleted() {
        return completed;
    }

    long count(Class<? extends Outcome> type) {
        return outcomes.stream().filter(type::isInstance).count();
    }

    void stop() {
        consumer.stop().block(Duration.ofSeconds(60));
    }

    /** As the end of a process would: what is under way is cut. */
    void dispose() {
        subscription.dispose();
    }

    @Override
    public void close() {
        dispose();
    }
}
