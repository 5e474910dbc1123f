package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Effect;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.PermanentFailure;
import java.time.Duration;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The rights at the broker that docs/security.md says are enough. */
class UserRightsTest {

    private static final Effect<Order> REFUSES_BAD = (order, db) -> {
        if (order.id().equals("bad")) {
            throw new PermanentFailure("refused");
        }
        return order.apply(db);
    };
    private static final String DEFAULT_EXCHANGE = "^amq\\.default$";

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private static String only(String name) {
        return "^" + Pattern.quote(name) + "$";
    }

    private static String both(String one, String other) {
        return "^(" + Pattern.quote(one) + "|" + Pattern.quote(other) + ")$";
    }

    private void appliesAndGivesUp(RabbitOptions options) {
        try (Running running = Running.start(options, database.pool(6), REFUSES_BAD)) {
            await().ignoreExceptions().until(() -> broker.consumers() == 1);
            broker.publish("good", "bad", "good");
            await().until(() -> running.outcomes.size() == 3);
            broker.awaitDeadLetters(1);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Duplicate.class)).isEqualTo(1);
            assertThat(running.listener.settleFailures).isEmpty();
            assertThat(running.listener.lost).isEmpty();
            running.stop();
        }
        database.assertAppliedOnce(1);
    }

    @Test
    void aUserThatMayReadTheQueueAndWriteToTheDefaultExchangeConsumesAndDeadLetters() {
        broker.declare();
        String user = broker.user("", DEFAULT_EXCHANGE, only(broker.queue()));
        appliesAndGivesUp(broker.options().connectionFactory(broker.as(user)).build());
    }

    @Test
    void aUserThatMayAlsoConfigureBothQueuesDeclaresThem() {
        String user =
                broker.user(both(broker.queue(), broker.deadLetterQueue()), DEFAULT_EXCHANGE, only(broker.queue()));
        appliesAndGivesUp(broker.options()
                .connectionFactory(broker.as(user))
                .declare(QueueDeclaration.quorum(5))
                .build());
    }

    @Test
    void aUserThatMayReadTheDeadLettersAndWriteToTheDefaultExchangeReplaysThem() {
        broker.declare();
        appliesAndGivesUp(broker.options().build());
        String operator = broker.user("", DEFAULT_EXCHANGE, only(broker.deadLetterQueue()));
        var letters = RabbitDeadLetters.of(
                broker.options().connectionFactory(broker.as(operator)).build());

        assertThat(letters.list().collectList().block(Duration.ofSeconds(20))).hasSize(1);
        assertThat(letters.replay(letter -> true, 100).collectList().block(Duration.ofSeconds(20)))
                .hasSize(1);
        await().until(() -> broker.ready(broker.queue()) == 1);
        assertThat(broker.deadLetters()).isEmpty();
    }
}
