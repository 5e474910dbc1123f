package io.onceflux.examples.loyalty;

import static org.assertj.core.api.Assertions.assertThat;

import com.rabbitmq.client.AMQP.BasicProperties;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class RabbitDeadLettersCommandTest extends DeadLettersCommandContract<RabbitShop> {

    RabbitDeadLettersCommandTest() throws Exception {
        super(new RabbitShop());
    }

    @Test
    void aLetterThatTheClientCannotReadIsSaidInASentence() throws Exception {
        Map<String, Object> headers = new HashMap<>();
        for (int depth = 0; depth < 40; depth++) {
            headers = new HashMap<>(Map.of("deeper", headers));
        }
        shop.channel.basicPublish(
                "",
                shop.queue + ".dlq",
                new BasicProperties.Builder().headers(headers).build(),
                new byte[0]);
        shop.awaitDeadLetters(4);
        assertThat(execute("list")).isEqualTo(1);
        assertThat(told())
                .contains("queue '" + shop.queue + ".dlq' at ", "could not be read", "Too many levels of nested tables")
                .doesNotContain("null");
    }

    @Test
    void aMissingQueueIsSaidInASentence() throws Exception {
        shop.channel.queueDelete(shop.queue + ".dlq");
        assertThat(execute("list")).isEqualTo(1);
        assertThat(told())
                .contains("queue '" + shop.queue + ".dlq' does not exist at ")
                .doesNotContain("Exception");
    }
}
