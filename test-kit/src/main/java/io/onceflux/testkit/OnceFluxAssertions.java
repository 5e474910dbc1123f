package io.onceflux.testkit;

import io.onceflux.Effect;
import io.onceflux.IdempotentConsumer;
import io.r2dbc.spi.ConnectionFactory;

/**
 * Assertions about effects and consumers, for tests with a PostgreSQL.
 *
 * <pre>{@code
 * assertThat(loyalty).appliesOnce(order);
 * assertThat(Loyalty::credit).on(pool).rollsBack(order);
 * }</pre>
 *
 * <p>They block the test's thread until everything has been done.
 */
public final class OnceFluxAssertions {

    private OnceFluxAssertions() {}

    /** About a consumer, as it is used by the service. */
    public static <T> ConsumerAssert<T> assertThat(IdempotentConsumer<T> consumer) {
        return new ConsumerAssert<>(consumer);
    }

    /** About an effect; {@link EffectAssert#on} says where it runs. */
    public static <T> EffectAssert<T> assertThat(Effect<T> effect) {
        return new EffectAssert<>(effect);
    }

    /** {@link EffectAssert#rollsBack}: fails if the effect leaves anything behind when its transaction is rolled back. */
    public static <T> void assertRollsBack(Effect<T> effect, T message, ConnectionFactory connections) {
        EffectAssert<T> passed = assertThat(effect).on(connections).rollsBack(message);
        passed.isNotNull();
    }
}
