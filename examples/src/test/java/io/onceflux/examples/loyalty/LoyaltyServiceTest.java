package io.onceflux.examples.loyalty;

import static io.onceflux.examples.loyalty.Shop.LIMIT;
import static io.onceflux.examples.loyalty.Shop.order;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.GetResponse;
import io.onceflux.Outcome;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class LoyaltyServiceTest {

    private final List<Outcome> outcomes = new CopyOnWriteArrayList<>();
    private RabbitShop shop;
    private LoyaltyService service;
    private CompletableFuture<Void> ended;

    @BeforeEach
    void start() throws Exception {
        shop = new RabbitShop();
        service = new LoyaltyService(shop.orders(), shop.pool);
        ended = service.run().doOnNext(outcomes::add).then().toFuture();
        shop.awaitConsumer();
    }

    @AfterEach
    void stop() throws Exception {
        service.stop().block(LIMIT);
        shop.close();
    }

    @Test
    void copiesOfAnOrderCreditItsPointsOnce() throws Exception {
        for (int copy = 0; copy < 3; copy++) {
            shop.publish(order("A-1", "C-1", 25));
            shop.publish(order("A-2", "C-1", 10));
            shop.publish(order("A-3", "C-2", 5));
        }

        await().atMost(LIMIT).until(() -> outcomes.size() == 9);

        assertThat(outcomes.stream().filter(Outcome.Applied.class::isInstance)).hasSize(3);
        assertThat(outcomes.stream().filter(Outcome.Duplicate.class::isInstance))
                .hasSize(6);
        assertThat(shop.points("C-1")).isEqualTo(35);
        assertThat(shop.points("C-2")).isEqualTo(5);
        assertThat(shop.ledgerRows()).isEqualTo(3);
    }

    @Test
    void anOrderThatCannotBeCreditedBecomesADeadLetterAndTheNextOneIsCredited() throws Exception {
        shop.publish(order("A-1", "nobody", 25));
        shop.publish("{\"orderId\": \"A-2\", \"customerId\": \"C-1\"}");
        shop.publish("{\"orderId\": null, \"customerId\": \"C-1\", \"points\": 7}");
        shop.publish(order("A-4", "C-1", 10));

        await().atMost(LIMIT).until(() -> outcomes.size() == 4);

        assertThat(shop.points("C-1")).isEqualTo(10);
        assertThat(shop.ledgerRows()).isEqualTo(1);
        shop.awaitDeadLetters(3);
        GetResponse deadLetter = shop.channel.basicGet(shop.queue + ".dlq", true);
        Map<String, Object> headers = deadLetter.getProps().getHeaders();
        assertThat(headers.get("x-onceflux-reason")).asString().isNotBlank();
    }

    @Test
    void stoppingEndsTheRunAndLeavesNothingUnacknowledged() throws Exception {
        shop.publish(order("A-1", "C-1", 25));
        await().atMost(LIMIT).until(() -> outcomes.size() == 1);

        service.stop().block(LIMIT);

        assertThat(ended).succeedsWithin(LIMIT);
        await("the broker has seen its end").atMost(LIMIT).until(() -> shop.channel.consumerCount(shop.queue) == 0);
        assertThat(shop.waiting()).isZero();
    }
}
