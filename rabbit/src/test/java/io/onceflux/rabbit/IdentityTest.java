package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.impl.LongStringHelper;
import io.onceflux.Database;
import io.onceflux.Order;
import io.onceflux.Outcome;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Ids as producers really send them: missing, blank, with NUL, in headers of any type. */
class IdentityTest {

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private static byte[] body(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private List<GetResponse> handle(RabbitOptions options, int applied, int duplicates, int failed) {
        try (Running running = Running.start(options, database.pool(6), Order::apply)) {
            await().until(() -> running.outcomes.size() == applied + duplicates + failed);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Applied.class)).isEqualTo(applied);
            assertThat(running.count(Outcome.Duplicate.class)).isEqualTo(duplicates);
            assertThat(running.count(Outcome.Failed.class)).isEqualTo(failed);
            running.stop();
        }
        database.assertAppliedOnce(applied);
        return broker.deadLetters();
    }

    @Test
    void oneIdWithNulAmongFiftyIsOneDeadLetterAndTheOthersAreApplied() {
        broker.declare();
        for (int i = 0; i < 50; i++) {
            String id = i == 25 ? "a\0b" : "order-" + i;
            Map<String, Object> headers = new HashMap<>();
            headers.put("event-id", id);
            broker.publish(Broker.properties("m").headers(headers).build(), body("order-" + i));
        }
        List<GetResponse> letters =
                handle(broker.options().messageIdFromHeader("event-id").build(), 49, 0, 1);
        assertThat(letters).hasSize(1);
        assertThat(Broker.header(letters.get(0), "reason")).contains("NUL");
        assertThat(Broker.header(letters.get(0), "attempts")).isEqualTo("0");
    }

    @Test
    void messagesWithoutAnIdOrWithABlankOneAreDeadLettersWithTheReason() {
        broker.declare();
        for (int i = 0; i < 3; i++) {
            broker.publish(Broker.properties("x").messageId(null).build(), body("none-" + i));
            broker.publish(Broker.properties("").build(), body("empty-" + i));
            broker.publish(Broker.properties("   ").build(), body("blank-" + i));
        }
        List<GetResponse> letters = handle(broker.options().build(), 0, 0, 9);
        assertThat(letters).hasSize(9);
        assertThat(letters.stream()
                        .map(letter -> Broker.header(letter, "reason"))
                        .distinct())
                .containsExactlyInAnyOrder(
                        "the message has no id", "the message id is empty", "the message id is blank");
        assertThat(letters.stream().map(letter -> new String(letter.getBody(), StandardCharsets.UTF_8)))
                .as("bodies")
                .contains("none-0", "none-1", "none-2", "empty-0", "blank-2");
    }

    @Test
    void everyFormOfTextInTheIdHeaderIsTheSameIdAndOtherTypesAreDeadLetters() {
        broker.declare();
        List<Object> sameId = List.of("42", LongStringHelper.asLongString("42"), body("42"), 42L, 42, (short) 42);
        List<Object> unusable =
                List.of(List.of("42"), Map.of("id", "42"), true, 42.0, new byte[] {(byte) 0xff, (byte) 0xfe});
        List<Object> all = new ArrayList<>(sameId);
        all.addAll(unusable);
        for (Object value : all) {
            Map<String, Object> headers = new HashMap<>();
            headers.put("event-id", value);
            headers.put("x-death", "abc");
            broker.publish(Broker.properties("m").headers(headers).build(), body("order-42"));
        }
        List<GetResponse> letters =
                handle(broker.options().messageIdFromHeader("event-id").build(), 1, sameId.size() - 1, unusable.size());
        assertThat(letters)
                .allSatisfy(
                        letter -> assertThat(Broker.header(letter, "reason")).contains("event-id"));
    }

    @Test
    void aNullHeaderIsNoId() {
        broker.declare();
        Map<String, Object> headers = new HashMap<>();
        headers.put("event-id", null);
        broker.publish(Broker.properties("m").headers(headers).build(), body("order-1"));
        List<GetResponse> letters =
                handle(broker.options().messageIdFromHeader("event-id").build(), 0, 0, 1);
        assertThat(Broker.header(letters.get(0), "reason")).isEqualTo("the message has no id");
    }

    /** As the client reads them, the first two would be one id, and the last two another. */
    @Test
    void propertiesThatAreNotUtf8AreNoIdsAndNotEqual() throws Exception {
        broker.declare();
        try (RawPublisher raw = new RawPublisher(broker.factory())) {
            List<byte[]> ids = List.of(
                    new byte[] {(byte) 0xff, (byte) 0xfe, 1},
                    new byte[] {(byte) 0xff, (byte) 0xfd, 1},
                    "café".getBytes(StandardCharsets.ISO_8859_1),
                    "cafè".getBytes(StandardCharsets.ISO_8859_1));
            for (int i = 0; i < ids.size(); i++) {
                raw.publish(broker.queue(), ids.get(i), new byte[] {'c', (byte) 0xff}, body("odd-" + i));
            }
            raw.publish(broker.queue(), body("order-1"), new byte[] {(byte) 0xff}, body("order-1"));
            raw.publish(broker.queue(), body("été"), body("c"), body("order-2"));
        }
        List<GetResponse> letters = handle(broker.options().build(), 2, 0, 4);
        assertThat(letters)
                .extracting(letter -> new String(letter.getBody(), StandardCharsets.UTF_8))
                .containsExactlyInAnyOrder("odd-0", "odd-1", "odd-2", "odd-3");
        assertThat(letters)
                .extracting(letter -> Broker.header(letter, "reason"))
                .containsOnly("the property message-id is not UTF-8, or has U+FFFD, so it is no message id");
        assertThat(letters).extracting(letter -> Broker.header(letter, "kind")).containsOnly("PERMANENT");
        assertThat(letters)
                .extracting(letter -> letter.getProps().getCorrelationId())
                .as("what the client makes of a binary property")
                .containsOnly("c\uFFFD");
    }
}
