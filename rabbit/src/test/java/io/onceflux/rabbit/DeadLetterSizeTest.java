package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.GetResponse;
import io.onceflux.Database;
import io.onceflux.Failure;
import io.onceflux.FailureKind;
import io.onceflux.MessageKey;
import io.onceflux.PermanentFailure;
import io.onceflux.Settlement;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** All properties of a message must fit into one frame; a dead letter says as much as there is room for. */
class DeadLetterSizeTest {

    private static final int FRAME_MAX = 131_072;
    private static final byte[] BODY = "order-1".getBytes(StandardCharsets.UTF_8);
    private static final String REASON = "gone ".repeat(150);

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    /** A message whose properties need a frame of exactly that size. */
    private static BasicProperties filling(int frame, BasicProperties.Builder properties) throws IOException {
        Map<String, Object> headers = new HashMap<>();
        headers.put("tenant", "acme");
        headers.put("padding", "");
        int empty = properties.headers(headers).build().toFrame(0, BODY.length).size();
        headers.put("padding", "x".repeat(frame - empty));
        return properties.headers(headers).build();
    }

    private GetResponse deadLetterOf(BasicProperties original) {
        broker.declare();
        broker.publish(original, BODY);
        try (Running running = Running.start(broker.options().build(), database.pool(6), (order, db) -> {
            throw new PermanentFailure(REASON);
        })) {
            broker.awaitDeadLetters(1);
            broker.awaitNoBacklog();
            assertThat(running.listener.settleFailures).isEmpty();
            running.stop();
        }
        GetResponse letter = broker.deadLetters().get(0);
        assertThat(letter.getBody()).isEqualTo(BODY);
        assertThat(letter.getProps().getMessageId()).isEqualTo("order-1");
        assertThat(texts(letter.getProps())).containsAllEntriesOf(texts(original));
        return letter;
    }

    private static Map<String, String> texts(BasicProperties properties) {
        Map<String, String> texts = new HashMap<>();
        properties.getHeaders().forEach((name, value) -> texts.put(name, String.valueOf(value)));
        return texts;
    }

    @Test
    void headersThatFillTheFrameAreKeptAndNothingIsAdded() throws Exception {
        GetResponse letter = deadLetterOf(filling(FRAME_MAX, Broker.properties("order-1")));
        assertThat(letter.getProps().getHeaders()).containsOnlyKeys("tenant", "padding");
    }

    @Test
    void headersThatLeaveALittleRoomAreKeptAndTheShortFormIsAdded() throws Exception {
        GetResponse letter = deadLetterOf(filling(130_400, Broker.properties("order-1")));
        assertThat(letter.getProps().getHeaders())
                .doesNotContainKeys(DeadLetterMessage.PREFIX + "message-key", DeadLetterMessage.PREFIX + "routing-key");
        assertThat(Broker.header(letter, "consumer")).isEqualTo("loyalty");
        assertThat(Broker.header(letter, "kind")).isEqualTo("PERMANENT");
        assertThat(Broker.header(letter, "attempts")).isEqualTo("1");
        assertThat(Broker.header(letter, "reason")).hasSize(100).isEqualTo(REASON.substring(0, 100));
    }

    @Test
    void whateverRoomTheOriginalLeavesTheDeadLetterFitsAndTheBrokerWillNotActOnIt() throws Exception {
        for (int frame = FRAME_MAX - 2_000; frame <= FRAME_MAX; frame++) {
            BasicProperties.Builder properties =
                    new BasicProperties.Builder().expiration("60000").userId("guest");
            BasicProperties letter =
                    DeadLetterMessage.properties(original(filling(frame, properties)), "orders", why(), FRAME_MAX);
            assertThat(letter.toFrame(0, BODY.length).size()).isLessThanOrEqualTo(FRAME_MAX);
            assertThat(letter.getHeaders()).containsKeys("tenant", "padding");
            assertThat(letter.getExpiration()).isNull();
            assertThat(letter.getUserId()).isNull();
        }
    }

    @Test
    void anOriginalThatFillsTheFrameWithCopiesOrWithoutADeliveryModeFitsToo() throws Exception {
        Map<String, Object> headers = new HashMap<>();
        headers.put("CC", List.of("x".repeat(FRAME_MAX - 2_000)));
        headers.put("tenant", "x".repeat(1_900));
        BasicProperties copied = new BasicProperties.Builder().headers(headers).build();
        assertThat(DeadLetterMessage.properties(original(copied), "orders", why(), FRAME_MAX)
                        .getHeaders())
                .containsOnlyKeys("tenant", DeadLetterMessage.PREFIX + "CC", DeadLetterMessage.PREFIX + "queue");

        BasicProperties full = filling(FRAME_MAX, new BasicProperties.Builder());
        BasicProperties letter = DeadLetterMessage.properties(original(full), "orders", why(), FRAME_MAX);
        assertThat(letter.toFrame(0, BODY.length).size()).isEqualTo(FRAME_MAX);
    }

    @Test
    void aConnectionWithoutALimitGetsAllOfIt() throws Exception {
        BasicProperties original = filling(FRAME_MAX, Broker.properties("order-1"));
        assertThat(DeadLetterMessage.properties(original(original), "orders", why(), 0)
                        .getHeaders())
                .containsKeys(DeadLetterMessage.PREFIX + "message-key", DeadLetterMessage.PREFIX + "queue");
    }

    private static Delivery original(BasicProperties properties) {
        return new Delivery(new Envelope(1, false, "", "orders"), properties, BODY);
    }

    private static Settlement.DeadLetter why() {
        MessageKey key = MessageKey.of("loyalty", "order-1");
        return new Settlement.DeadLetter(
                "loyalty",
                new Failure(
                        FailureKind.PERMANENT, key, REASON, "22003", 1, Instant.EPOCH, new PermanentFailure(REASON)));
    }
}
