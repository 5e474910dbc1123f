package io.onceflux.benchmarks.scenario;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.HashSet;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class OrdersTest {

    @ParameterizedTest
    @ValueSource(ints = {0, 10, 50, 99})
    void theShareOfCopiesIsWhatWasAskedFor(int percent) {
        Orders orders = new Orders(percent);
        int messages = 20_000;
        assertThat(ids(orders, messages)).hasSize(messages / 100 * (100 - percent));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 10, 50, 99})
    void howManyDifferentOrdersThereAreIsKnownAfterAnyMessage(int percent) {
        Orders orders = new Orders(percent);
        Set<String> ids = new HashSet<>();
        for (int i = 0; i < 1_234; i++) {
            ids.add(orders.message(i).orderId());
            assertThat(orders.distinct(i + 1)).isEqualTo(ids.size());
        }
    }

    @Test
    void aMessageIsTheSameWheneverItIsAskedFor() {
        assertThat(new Orders(50).message(4_711)).isEqualTo(new Orders(50).message(4_711));
    }

    @Test
    void whatIsLanesApartHasNoCustomerInCommon() {
        Orders orders = new Orders(0);
        Set<String> ofOne = customers(orders, 3);
        Set<String> ofAnother = customers(orders, 4);
        assertThat(ofOne).isNotEmpty().doesNotContainAnyElementsOf(ofAnother);
    }

    @Test
    void onlyCopiesAreNoMessages() {
        assertThatThrownBy(() -> new Orders(100)).isInstanceOf(IllegalArgumentException.class);
    }

    private static Set<String> ids(Orders orders, int messages) {
        return new HashSet<>(IntStream.range(0, messages)
                .mapToObj(i -> orders.message(i).orderId())
                .toList());
    }

    private static Set<String> customers(Orders orders, int lane) {
        return new HashSet<>(LongStream.range(0, 30_000)
                .mapToObj(i -> orders.message(i * 16 + lane).customerId())
                .toList());
    }

    @Test
    void ordersMayBeOfFewCustomers() {
        Orders orders = new Orders(0, 3);
        assertThat(IntStream.range(0, 1_000).mapToObj(n -> orders.message(n).customerId()))
                .containsOnly("customer-00000", "customer-00001", "customer-00002");
        assertThatThrownBy(() -> new Orders(0, 0)).isInstanceOf(IllegalArgumentException.class);
    }
}
