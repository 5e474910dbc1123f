package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.postgres.DeadLetterTable;
import io.onceflux.services.ForkedJvm;
import io.r2dbc.spi.ConnectionFactories;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Large dead letters are not all in memory at once. */
class DeadLetterMemoryTest {

    private static final Duration LIMIT = Duration.ofMinutes(2);
    private static final int LETTERS = 60;

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();

    @Test
    void lettersThatAreLargerThanTheMemoryTogetherAreListedAndReplayed() {
        database.run(DeadLetterTable.deadLetters().createSql());
        database.run("""
                INSERT INTO dead_letters (consumer, message_key, message_id, origin, kind, reason, attempts, failed_at,
                                          header_names, header_values, body)
                SELECT 'loyalty', 'm' || n, 'm' || n, 'queue', 'PERMANENT', 'before', 1, now(), '{}', '{}',
                       convert_to(rpad('m' || n, 2500000), 'UTF8')
                FROM generate_series(1, %d) AS n""".formatted(LETTERS));
        try (ForkedJvm replaying =
                ForkedJvm.start(Replaying.class, List.of("-Xmx64m"), Map.of(), database.r2dbcUrl())) {
            assertThat(replaying.awaitLine(line -> line.startsWith("listed"), LIMIT))
                    .isEqualTo("listed " + LETTERS);
            assertThat(replaying.awaitLine(line -> line.startsWith("replayed"), LIMIT))
                    .isEqualTo("replayed " + LETTERS);
        }
        database.assertAppliedOnce(LETTERS);
    }

    /** Lists and replays in a process with little memory. */
    static final class Replaying {

        private Replaying() {}

        public static void main(String[] args) {
            DeadLetters letters = Consumers.orders(Order::note)
                    .deadLetterTable(DeadLetterTable.deadLetters())
                    .build(ConnectionFactories.get(args[0]))
                    .deadLetters(
                            body -> Order.of(new String(body, 0, 5, java.nio.charset.StandardCharsets.UTF_8).strip()));
            System.out.println("listed " + letters.list().count().block(LIMIT));
            System.out.println(
                    "replayed " + letters.replay(letter -> true, 1_000).count().block(LIMIT));
            System.exit(0);
        }
    }
}
