package io.onceflux.examples.loyalty;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.util.List;
import org.junit.jupiter.api.Test;

class KafkaDeadLettersCommandTest extends DeadLettersCommandContract<KafkaShop> {

    KafkaDeadLettersCommandTest() throws Exception {
        super(new KafkaShop());
    }

    @Test
    void aMissingTopicIsSaidInASentence() throws Exception {
        String deadLetters = shop.consumed.deadLetters();
        shop.consumed.admin().deleteTopics(List.of(deadLetters)).all().get();
        await().atMost(Shop.LIMIT).until(() -> shop.consumed.ends(deadLetters).isEmpty());
        assertThat(execute("list")).isEqualTo(1);
        assertThat(told())
                .contains("topic '" + deadLetters + "' does not exist at ")
                .doesNotContain("Exception");
    }
}
