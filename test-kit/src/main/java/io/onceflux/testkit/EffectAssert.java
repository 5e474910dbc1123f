package io.onceflux.testkit;

import io.onceflux.Delivery;
import io.onceflux.Effect;
import io.onceflux.FailurePolicy;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Outcome;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import org.assertj.core.api.AbstractAssert;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Assertions about an effect.
 *
 * @param <T> the payload
 */
public final class EffectAssert<T> extends AbstractAssert<EffectAssert<T>, Effect<T>> {

    private static final Duration LIMIT = Duration.ofMinutes(1);

    /** Behind the rollback, for what an effect has set going without waiting for it. */
    private static final Duration LATE = Duration.ofMillis(500);

    private @Nullable ConnectionFactory connections;

    EffectAssert(Effect<T> effect) {
        super(effect, EffectAssert.class);
    }

    /** Where it runs: a test's own database, which nobody else changes meanwhile, of moderate size, as all tables are read. */
    public EffectAssert<T> on(ConnectionFactory ofTheDatabase) {
        this.connections = ofTheDatabase;
        return this;
    }

    /**
     * Everything that the effect writes is in its transaction. It runs once, its transaction is rolled back, and all tables are as before:
     * a statement on another connection, one in autocommit, or one that is sent off without being waited for would have left something. What
     * sequences count is not looked at.
     *
     * <p>An effect that writes nothing fails, too: it would prove nothing.
     */
    public EffectAssert<T> rollsBack(T message) {
        isNotNull();
        ConnectionFactory database = Objects.requireNonNull(connections, "say where the effect runs: on(connections)");
        Tables before = look(database);
        AtomicReference<@Nullable Tables> inside = new AtomicReference<>();
        IdempotentConsumer<T> consumer = IdempotentConsumer.<T>named("test-kit")
                .identifiedByMessageId()
                .withoutClaims()
                .failurePolicy(FailurePolicy.builder().maxAttempts(1).build())
                .effect((payload, db) -> Flux.from(actual.apply(payload, db))
                        .then(db.inConnection(Tables::of))
                        .doOnNext(inside::set)
                        .then(Mono.error(new RolledBack())))
                .build(database);
        Outcome outcome = consumer.process(Delivery.of("test-kit", message)).block(LIMIT);
        if (!(outcome instanceof Outcome.Failed failed && failed.failure().cause() instanceof RolledBack)) {
            throw failure("Expected the effect to succeed for %s, but it became %s", message, outcome);
        }
        List<String> left = leftBehind(database, before);
        if (!left.isEmpty()) {
            failWithMessage(
                    "Expected nothing of the effect of %s to remain when its transaction is rolled back, but it did: %s. Use the client"
                            + " that the effect is given, and return what has to be waited for",
                    message, left);
        }
        if (Objects.requireNonNull(inside.get()).equals(before)) {
            failWithMessage(
                    "Expected the effect of %s to write something: nothing was there to be rolled back", message);
        }
        return this;
    }

    private static Tables look(ConnectionFactory database) {
        return Objects.requireNonNull(Mono.usingWhen(database.create(), Tables::of, connection -> connection.close())
                .block(LIMIT));
    }

    /** Looked at until the time is over, or there is something. */
    private static List<String> leftBehind(ConnectionFactory database, Tables before) {
        long end = System.nanoTime() + LATE.toNanos();
        List<String> left = look(database).differencesTo(before);
        while (left.isEmpty() && System.nanoTime() < end) {
            left = look(database).differencesTo(before);
        }
        return left;
    }

    private static final class RolledBack extends RuntimeException {
        RolledBack() {
            super("rolled back by the test", null, false, false);
        }
    }
}
