package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class MappedDeliveryTest {

    private final AtomicInteger decoded = new AtomicInteger();
    private final TestDelivery<String> source = new TestDelivery<>("id-1", "42");

    @Test
    void nothingIsDecodedBeforeThePayloadIsAskedFor() {
        Delivery<Integer> mapped = source.map(this::parse);
        assertThat(mapped.id()).isEqualTo("id-1");
        assertThat(mapped.origin()).isEqualTo("test delivery id-1");
        assertThat(decoded).hasValue(0);
    }

    @Test
    void aPayloadIsDecodedOnce() {
        Delivery<Integer> mapped = source.map(this::parse);
        assertThat(mapped.payload()).isEqualTo(42);
        assertThat(mapped.payload()).isEqualTo(42);
        assertThat(decoded).hasValue(1);
    }

    @Test
    void aFailureIsKeptToo() {
        Delivery<Integer> mapped = source.map(text -> {
            decoded.incrementAndGet();
            throw new IOException("not JSON");
        });
        Throwable first = catchThrowable(mapped::payload);
        assertThat(first).isInstanceOf(PermanentFailure.class).hasMessageContaining("not JSON");
        assertThat(catchThrowable(mapped::payload)).isSameAs(first);
        assertThat(decoded).hasValue(1);
    }

    @Test
    void anErrorOfADecoderIsThatPayloadsFault() {
        Delivery<Integer> mapped = source.map(text -> {
            throw new StackOverflowError();
        });
        assertThatThrownBy(mapped::payload)
                .isInstanceOf(PermanentFailure.class)
                .hasCauseInstanceOf(StackOverflowError.class);
    }

    @Test
    @SuppressWarnings("NullAway") // what a decoder without annotations may do
    void aDecoderThatReturnsNullIsAFailure() {
        Delivery<Integer> mapped = source.map(text -> null);
        assertThatThrownBy(mapped::payload).hasMessage("the decoder returned null");
    }

    @Test
    void theSourceIsToldAndAsked() {
        Delivery<Integer> mapped = source.map(this::parse).map(n -> n + 1);
        mapped.settle(Settlement.requeue()).block();
        mapped.handlingBegins();
        mapped.handlingEnded();
        source.channelLost();

        assertThat(source.settlements()).isEqualTo(List.of(Settlement.requeue()));
        assertThat(source.handling()).containsExactly("begins", "ended");
        assertThat(mapped.orderingKey()).isNull();
        assertThat(source.keptInOrderBy("customer-1")).isSameAs(source);
        assertThat(mapped.orderingKey()).isEqualTo("customer-1");
        assertThat(mapped.isCurrent()).isFalse();
        assertThat(decoded).hasValue(0);
    }

    private Integer parse(String text) {
        decoded.incrementAndGet();
        return Integer.valueOf(text);
    }
}
