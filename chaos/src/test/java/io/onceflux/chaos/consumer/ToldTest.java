package io.onceflux.chaos.consumer;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.Delivery;
import io.onceflux.MessageKey;
import io.onceflux.Outcome;
import io.onceflux.Settlement;
import io.onceflux.chaos.consumer.Variant.Incoming;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

class ToldTest {

    private static final Outcome APPLIED = new Outcome.Applied(new MessageKey("chaos", "r001-0007"));
    private static final String LOGGED = "05:00:00.123 [main] INFO io.onceflux.chaos.consumer.EventLog - ";

    @Test
    void aLineIsReadAsItWasWritten() {
        String line =
                LOGGED + Told.line(Incoming.from(41, delivery("r001-0007;C-000;10")), APPLIED, Duration.ofMillis(9));

        assertThat(line).endsWith(" - r001-0007 copy 3, arrival 42: Applied after 9 ms");
        assertThat(Told.parse(line)).hasValue(new Told(new Copy("r001-0007", 3), 42, "Applied"));
    }

    @Test
    void whatCannotBeDecodedHasNoArrival() {
        String line = LOGGED + Told.line(Incoming.from(41, delivery("this is no order")), APPLIED, Duration.ZERO);

        assertThat(Told.parse(line)).hasValue(new Told(new Copy("r001-0007", 3), 0, "Applied"));
    }

    @Test
    void aLineThatWasCutShortIsNone() {
        String line = LOGGED + "r001-0007 copy 3, arrival 42: Applied after 9 ms";

        for (int length = 0; length < line.length(); length++) {
            assertThat(Told.parse(line.substring(0, length))).isEmpty();
        }
        assertThat(Told.parse(LOGGED + "r001-0007 copy 3 dropped")).isEmpty();
    }

    private static Delivery<byte[]> delivery(String body) {
        return new Delivery<>() {
            @Override
            public byte[] payload() {
                return body.getBytes(UTF_8);
            }

            @Override
            public String id() {
                return "r001-0007";
            }

            @Override
            public Map<String, String> headers() {
                return Map.of(Copy.HEADER, "3");
            }

            @Override
            public Mono<Void> settle(Settlement settlement) {
                return Mono.empty();
            }
        };
    }
}
