package io.onceflux.outbox;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.MessageKey;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class IdempotencyKeysTest {

    @Test
    void theyStayTheSameForEver() {
        assertThat(IdempotencyKeys.of(MessageKey.of("loyalty", "order-1"), 0))
                .as("receivers have stored it")
                .isEqualTo("2c25fa14-d4d5-8e5d-a647-3fd4c7e04659");
        UUID key = UUID.fromString(IdempotencyKeys.of(MessageKey.of("loyalty", "order-1"), 0));
        assertThat(key.version()).isEqualTo(8);
        assertThat(key.variant()).isEqualTo(2);
    }

    @Test
    void noTwoAreAlike() {
        assertThat(Set.of(
                        IdempotencyKeys.of(MessageKey.of("a:b", "c"), 0),
                        IdempotencyKeys.of(MessageKey.of("a", "b:c"), 0),
                        IdempotencyKeys.of(MessageKey.of("a:b", "c"), 1),
                        IdempotencyKeys.of(MessageKey.of("ab", "c"), 0),
                        IdempotencyKeys.of(MessageKey.of("a", "bc"), 0)))
                .hasSize(5);
    }
}
