package io.onceflux.rabbit;

import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Order;
import io.onceflux.PermanentFailure;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryOptions;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;

/** Fails in all the ways in which a password is at hand, and prints everything that there is to see. */
final class TellingService {

    static final String SECRET = "s3cr3t-Pa55word";

    private static final Duration SHORT = Duration.ofMillis(500);

    private final ConnectionFactory database;
    private final ConnectionFactory refusingDatabase;
    private final String queue;

    private TellingService(ConnectionFactory database, ConnectionFactory refusingDatabase, String queue) {
        this.database = database;
        this.refusingDatabase = refusingDatabase;
        this.queue = queue;
    }

    public static void main(String[] args) {
        String broker = args[0] + ":" + args[1];
        ConnectionFactoryOptions options = ConnectionFactoryOptions.parse(args[3]);
        TellingService telling = new TellingService(
                ConnectionFactories.get(options),
                ConnectionFactories.get(options.mutate()
                        .option(ConnectionFactoryOptions.USER, "nobody")
                        .option(ConnectionFactoryOptions.PASSWORD, SECRET)
                        .build()),
                args[2]);
        String good = "amqp://guest:guest@" + broker;
        String refused = "amqp://guest:" + SECRET + "@" + broker;
        telling.consume("a login that the broker refuses", telling.database, () -> telling.options(refused));
        telling.consume("a login that the database refuses", telling.refusingDatabase, () -> telling.options(good));
        telling.consume(
                "a broker that is not there",
                telling.database,
                () -> telling.options("amqp://guest:" + SECRET + "@127.0.0.1:1"));
        for (String malformed : List.of(
                "amqp://guest:" + SECRET + "@" + broker + "/a b",
                "amqp://guest:" + SECRET + "%zz@" + broker,
                "http://guest:" + SECRET + "@" + broker,
                "amqp://guest:" + SECRET + "@" + broker + "/a/b")) {
            telling.consume("a URI that is none", telling.database, () -> telling.options(malformed));
        }
        telling.look("dead letters that the broker refuses to show", refused);
        System.out.println("END");
        System.exit(0);
    }

    private RabbitOptions options(String uri) {
        return RabbitOptions.queue(queue).uri(uri).startLimit(SHORT).build();
    }

    private void consume(String title, ConnectionFactory connections, Supplier<RabbitOptions> from) {
        say(title, null);
        try {
            RabbitOptions options = from.get();
            say(options, null);
            IdempotentConsumer<Order> consumer = IdempotentConsumer.<Order>named("loyalty")
                    .identifiedByMessageId()
                    .lanes(2)
                    .startLimit(SHORT)
                    .effect((order, db) -> {
                        throw new PermanentFailure("not needed");
                    })
                    .build(connections);
            say(consumer, null);
            Flux<Delivery<byte[]>> deliveries = RabbitDeliveries.from(options);
            say(deliveries, null);
            say(
                    deliveries
                            .map(delivery -> delivery.map(body -> Order.of("1")))
                            .transform(consumer)
                            .timeout(Duration.ofSeconds(20))
                            .onErrorResume(error -> {
                                say(consumer.health(), error);
                                return Flux.empty();
                            })
                            .blockLast(),
                    null);
            say(consumer.process(Delivery.of("1", Order.of("1"))).block(), null);
        } catch (RuntimeException e) {
            say("refused", e);
        }
    }

    private void look(String title, String uri) {
        say(title, null);
        try {
            var letters = RabbitDeadLetters.of(options(uri));
            say(letters, null);
            say(letters.list().collectList().block(), null);
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
