package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import io.onceflux.services.RabbitService;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;

/** A queue of its own on a real broker: what a producer and an operator would do with it. */
final class Broker implements AutoCloseable {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final RabbitService service;
    private final String queue = "orders-" + UUID.randomUUID();

    private Broker(RabbitService service) {
        this.service = service;
    }

    /** On the broker that all tests share. */
    static Broker create() {
        return on(RabbitService.shared());
    }

    static Broker on(RabbitService service) {
        return new Broker(service);
    }

    String queue() {
        return queue;
    }

    String deadLetterQueue() {
        return queue + ".dlq";
    }

    /** Options for this queue, with short pauses. */
    RabbitOptions.Builder options() {
        return RabbitOptions.queue(queue)
                .connectionFactory(factory())
                .backoff(Duration.ofMillis(50), Duration.ofMillis(500));
    }

    ConnectionFactory factory() {
        return call(() -> {
            ConnectionFactory factory = new ConnectionFactory();
            factory.setUri(service.uri());
            factory.setAutomaticRecoveryEnabled(false);
            return factory;
        });
    }

    /** A user of this broker, with rights as the broker's regular expressions for names; log in with {@link #as}. */
    String user(String configure, String write, String read) {
        String name = "user-" + UUID.randomUUID();
        service.ctl("add_user", name, name);
        grant(name, configure, write, read);
        return name;
    }

    void grant(String user, String configure, String write, String read) {
        service.ctl("set_permissions", "-p", factory().getVirtualHost(), user, configure, write, read);
    }

    ConnectionFactory as(String user) {
        ConnectionFactory factory = factory();
        factory.setUsername(user);
        factory.setPassword(user);
        return factory;
    }

    /** Somebody else's consumer, which lets no other in; it ends with the connection. */
    Connection consumeExclusively() {
        return call(() -> {
            Connection connection = factory().newConnection("exclusive");
            Objects.requireNonNull(connection.createChannel())
                    .basicConsume(queue, false, "", false, true, Map.of(), (tag, message) -> {}, (String tag) -> {});
            return connection;
        });
    }

    void declare() {
        declare(QueueDeclaration.classic());
    }

    void declare(QueueDeclaration declaration) {
        onChannel(channel -> {
            channel.queueDeclare(deadLetterQueue(), true, false, false, declaration.deadLetterQueueArguments(false));
            channel.queueDeclare(queue, true, false, false, declaration.queueArguments("", deadLetterQueue()));
        });
    }

    void declare(String name, Map<String, Object> arguments) {
        onChannel(channel -> channel.queueDeclare(name, true, false, false, arguments));
    }

    /** Whether a queue is there with these arguments and no others; if there is none, it is declared so. */
    boolean isDeclaredWith(String name, Map<String, Object> arguments) {
        try {
            declare(name, arguments);
            return true;
        } catch (IllegalStateException e) {
            if (Refusals.isAbout(e, Refusals.PRECONDITION_FAILED)) {
                return false;
            }
            throw e;
        }
    }

    /** The queue alone, which drops what expires, and no place for dead letters. */
    void declareWithoutDeadLetters() {
        declare(queue, Map.of());
    }

    /** Declares an exchange that brings everything into the queue of dead letters, and returns its name. */
    String exchangeOfDeadLetters() {
        String exchange = queue + ".dlx";
        onChannel(channel -> {
            channel.exchangeDeclare(exchange, "fanout", true);
            channel.queueBind(deadLetterQueue(), exchange, "");
        });
        return exchange;
    }

    void deleteExchange(String name) {
        onChannel(channel -> channel.exchangeDelete(name));
    }

    void delete(String name) {
        onChannel(channel -> channel.queueDelete(name));
    }

    /** Removes what waits in the queue, unread. */
    void purge() {
        await().atMost(LIMIT).until(() -> {
            onChannel(channel -> channel.queuePurge(queue));
            return backlog() == 0;
        });
    }

    /** Publishes messages whose id and body are the given texts, confirmed. */
    void publish(List<String> ids) {
        onChannel(channel -> {
            channel.confirmSelect();
            for (String id : ids) {
                channel.basicPublish("", queue, properties(id).build(), id.getBytes(StandardCharsets.UTF_8));
            }
            channel.waitForConfirmsOrDie(LIMIT.toMillis());
        });
    }

    void publish(String... ids) {
        publish(List.of(ids));
    }

    void publish(BasicProperties properties, byte[] body) {
        onChannel(channel -> {
            channel.confirmSelect();
            channel.basicPublish("", queue, properties, body);
            channel.waitForConfirmsOrDie(LIMIT.toMillis());
        });
    }

    /** Publishes many messages of a size, with ids that count up. */
    void publishMany(int count, int size) {
        byte[] body = new byte[size];
        onChannel(channel -> {
            channel.confirmSelect();
            for (int i = 0; i < count; i++) {
                channel.basicPublish("", queue, properties("order-" + i).build(), body);
                if (i % 1_000 == 0) {
                    channel.waitForConfirmsOrDie(LIMIT.toMillis());
                }
            }
            channel.waitForConfirmsOrDie(LIMIT.toMillis());
        });
    }

    static BasicProperties.Builder properties(String id) {
        return new BasicProperties.Builder().messageId(id).deliveryMode(2).headers(new HashMap<>());
    }

    /** Takes everything out of the dead-letter queue. */
    List<GetResponse> deadLetters() {
        List<GetResponse> letters = new ArrayList<>();
        onChannel(channel -> {
            GetResponse letter = channel.basicGet(deadLetterQueue(), true);
            while (letter != null) {
                letters.add(letter);
                letter = channel.basicGet(deadLetterQueue(), true);
            }
        });
        return letters;
    }

    /** Takes one message out of the queue. */
    GetResponse take() {
        return this.<GetResponse>ask(channel -> Objects.requireNonNull(channel.basicGet(queue, true)));
    }

    static String header(GetResponse letter, String name) {
        Map<String, Object> headers = Objects.requireNonNull(letter.getProps().getHeaders());
        return String.valueOf(headers.get(DeadLetterMessage.PREFIX + name));
    }

    void awaitDeadLetters(int count) {
        await().atMost(LIMIT).until(() -> ready(deadLetterQueue()) == count);
    }

    /** Messages that wait in a queue. */
    long ready(String name) {
        return this.<Long>ask(channel -> channel.messageCount(name));
    }

    long consumers() {
        return this.<Long>ask(channel -> channel.consumerCount(queue));
    }

    /** Messages that wait or are unacknowledged, as the broker tells. Slow: it starts the broker's command line. */
    long backlog() {
        return count("messages");
    }

    long unacknowledged() {
        return count("messages_unacknowledged");
    }

    private long count(String column) {
        return service.ctl("-q", "list_queues", "name", column)
                .lines()
                .filter(line -> line.startsWith(queue + "\t"))
                .map(line -> Long.parseLong(line.substring(queue.length() + 1).strip()))
                .findFirst()
                .orElseThrow();
    }

    void awaitNoBacklog() {
        await().atMost(LIMIT)
                .untilAsserted(() ->
                        assertThat(backlog()).as("ready and unacknowledged").isZero());
    }

    /** Closes every connection to the broker from its side, as an operator or a failing node does. */
    void closeConnections() {
        service.ctl("close_all_connections", "closed by a test");
    }

    private void onChannel(Action action) {
        this.<Object>ask(channel -> {
            action.on(channel);
            return new Object();
        });
    }

    private <R> R ask(Question<R> question) {
        return call(() -> {
            try (Connection connection = factory().newConnection("test")) {
                return question.of(Objects.requireNonNull(connection.createChannel()));
            }
        });
    }

    private static <R> R call(java.util.concurrent.Callable<R> work) {
        try {
            return work.call();
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() {
        delete(queue);
        delete(deadLetterQueue());
    }

    interface Action {
        void on(Channel channel) throws Exception;
    }

    interface Question<R> {
        R of(Channel channel) throws Exception;
    }
}
