package io.onceflux.kafka;

import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Order;
import io.onceflux.PermanentFailure;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;

/** Fails in all the ways in which a password is at hand, and prints everything that there is to see. */
final class TellingService {

    static final String SECRET = "s3cr3t-Pa55word";

    private final ConnectionFactory database;
    private final String topic;

    private TellingService(ConnectionFactory database, String topic) {
        this.database = database;
        this.topic = topic;
    }

    static Map<String, Object> login(String user, String password) {
        Map<String, Object> login = new HashMap<>();
        login.put("security.protocol", "SASL_PLAINTEXT");
        login.put("sasl.mechanism", "PLAIN");
        login.put(
                "sasl.jaas.config",
                "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"%s\" password=\"%s\";"
                        .formatted(user, password));
        return login;
    }

    public static void main(String[] args) {
        TellingService telling = new TellingService(ConnectionFactories.get(args[2]), args[1]);
        telling.consume("a login that the broker refuses", args[0], login("bob", SECRET));
        telling.consume("rights that are missing", args[0], login("alice", SECRET));
        telling.consume("a broker that is not there", "127.0.0.1:1", login("alice", SECRET));
        for (String jaas : new String[] {
            "org.apache.kafka.common.security.plain.PlainLoginModule required password=\"" + SECRET + "\"",
            "org.apache.kafka.common.security.plain.PlainLoginModule needed password=\"" + SECRET + "\";",
            "org.apache.kafka.NoModule required password=\"" + SECRET + "\";",
            SECRET
        }) {
            Map<String, Object> malformed = login("alice", SECRET);
            malformed.put("sasl.jaas.config", jaas);
            telling.consume("a JAAS configuration that is none", args[0], malformed);
        }
        Map<String, Object> key = login("alice", SECRET);
        key.put("security.protocol", "SASL_SSL");
        key.put("ssl.keystore.type", "PEM");
        key.put("ssl.keystore.key", SECRET);
        key.put("ssl.keystore.certificate.chain", "none");
        key.put("ssl.key.password", SECRET);
        telling.consume("a key that is none", args[0], key);
        telling.look("dead letters that the broker refuses to show", args[0], login("bob", SECRET));
        System.out.println("END");
        System.exit(0);
    }

    private KafkaOptions options(String servers, Map<String, Object> login) {
        return KafkaOptions.topic(topic)
                .bootstrapServers(servers)
                .groupId("telling")
                .properties(login)
                .messageIdFromHeader(Broker.ID)
                .startLimit(Duration.ofMillis(500))
                .build();
    }

    private void consume(String title, String servers, Map<String, Object> login) {
        say(title, null);
        try {
            KafkaOptions options = options(servers, login);
            say(options, null);
            IdempotentConsumer<Order> consumer = IdempotentConsumer.<Order>named("loyalty")
                    .identifiedByMessageId()
                    .lanes(2)
                    .effect((order, db) -> {
                        throw new PermanentFailure("not needed");
                    })
                    .build(database);
            Flux<Delivery<byte[]>> deliveries = KafkaDeliveries.from(options);
            say(deliveries, null);
            say(
                    deliveries
                            .map(delivery -> delivery.map(body -> Order.of("1")))
                            .transform(consumer)
                            .timeout(Duration.ofSeconds(30))
                            .onErrorResume(error -> {
                                say(consumer.health(), error);
                                return Flux.empty();
                            })
                            .blockLast(),
                    null);
        } catch (RuntimeException e) {
            say("refused", e);
        }
    }

    private void look(String title, String servers, Map<String, Object> login) {
        say(title, null);
        try {
            var letters = KafkaDeadLetters.of(options(servers, login));
            say(letters, null);
            say(letters.list().collectList().block(Duration.ofSeconds(30)), null);
        } catch (RuntimeException e) {
            say("refused", e);
        }
    }

    private static void say(@Nullable Object what, @Nullable Throwable error) {
        System.out.println(what);
        if (error != null) {
            error.printStackTrace(System.out);
        }
    }
}
