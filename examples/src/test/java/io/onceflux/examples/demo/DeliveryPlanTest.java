package io.onceflux.examples.demo;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.examples.loyalty.OrderCompleted;
import java.util.List;
import org.junit.jupiter.api.Test;

class DeliveryPlanTest {
    private final DeliveryPlan plan = DeliveryPlan.of(1_000, 1);

    @Test
    void aThousandOrdersComeInFourteenHundredMessages() {
        assertThat(plan.orders()).isEqualTo(1_000);
        assertThat(plan.deliveries()).isEqualTo(1_400);
        assertThat(plan.replay()).hasSize(200);
    }

    @Test
    void theStreamHasDuplicatesRightBehindAndHundredsLater() {
        List<OrderCompleted> stream = plan.stream();
        List<Integer> distances = stream.stream()
                .distinct()
                .map(order -> stream.lastIndexOf(order) - stream.indexOf(order))
                .filter(distance -> distance > 0)
                .toList();

        assertThat(distances).filteredOn(distance -> distance == 1).hasSizeGreaterThan(40);
        assertThat(distances).filteredOn(distance -> distance >= 300).hasSize(50);
    }

    @Test
    void theSameSeedMakesTheSamePlan() {
        assertThat(DeliveryPlan.of(1_000, 1)).isEqualTo(plan);
        assertThat(DeliveryPlan.of(1_000, 2)).isNotEqualTo(plan);
    }
}
