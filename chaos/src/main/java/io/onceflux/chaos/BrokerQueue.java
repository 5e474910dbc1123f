package io.onceflux.chaos;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import io.onceflux.chaos.consumer.Copy;
import io.onceflux.chaos.proxy.TcpProxy;
import io.onceflux.services.RabbitService;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeoutException;

/** A queue of RabbitMQ and its dead letters. */
final class BrokerQueue implements Place {

    private static final String NAME = "chaos";
    private static final String DEAD_LETTERS = NAME + ".dlq";

    private final RabbitService rabbit;
    private final List<TcpProxy> acks;

    /** @param acks a proxy for each consumer */
    BrokerQueue(RabbitService rabbit, List<TcpProxy> acks) {
        this.rabbit = rabbit;
        this.acks = acks;
    }

    @Override
    public String address(int consumer) {
        return rabbit.uri()
                .replace(
                        rabbit.host() + ":" + rabbit.port(),
                        acks.get(consumer - 1).address());
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public Outlet outlet(boolean repeats) {
        return new QueueOutlet(this);
    }

    @Override
    public Map<Integer, Long> ends() {
        return Map.of();
    }

    Connection connect(String purpose) throws IOException, TimeoutException {
        ConnectionFactory factory = new ConnectionFactory();
        try {
            factory.setUri(rabbit.uri());
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
        factory.setAutomaticRecoveryEnabled(false);
        factory.setRequestedHeartbeat(2);
        factory.setConnectionTimeout(2_000);
        factory.setHandshakeTimeout(2_000);
        return factory.newConnection("chaos " + purpose);
    }

    void declare(QueueType type) throws IOException, TimeoutException {
        try (Connection connection = connect("declaration")) {
            Channel channel = connection.createChannel();
            channel.queueDeclare(DEAD_LETTERS, true, false, false, Map.of());
            Map<String, Object> arguments = new HashMap<>(type.arguments());
            arguments.put("x-dead-letter-exchange", "");
            arguments.put("x-dead-letter-routing-key", DEAD_LETTERS);
            channel.queueDeclare(NAME, true, false, false, arguments);
        }
        // The broker writes new queues to disk some seconds later, and may be killed before.
        ctl("eval", "mnesia:dump_log().");
    }

    @Override
    public long consumers() throws IOException, TimeoutException {
        try (Connection connection = connect("look")) {
            return connection.createChannel().consumerCount(NAME);
        }
    }

    /** Slow: it starts the broker's command line. */
    @Override
    public long backlog() {
        return ctl("-q", "list_queues", "name", "messages")
                .lines()
                .map(line -> line.split("\t", -1))
                .filter(columns -> columns[0].equals(NAME))
                .mapToLong(columns -> Long.parseLong(columns[1].strip()))
                .findFirst()
                .orElseThrow();
    }

    /** The command line is a node of its own, which a machine under load may let fail to meet the broker's. */
    private String ctl(String... arguments) {
        try {
            return rabbit.ctl(arguments);
        } catch (IllegalStateException e) {
            return rabbit.ctl(arguments);
        }
    }

    @Override
    public List<Letter> takeDeadLetters() throws IOException, TimeoutException {
        List<Letter> letters = new ArrayList<>();
        try (Connection connection = connect("dead letters")) {
            Channel channel = connection.createChannel();
            for (GetResponse letter = channel.basicGet(DEAD_LETTERS, true);
                    letter != null;
                    letter = channel.basicGet(DEAD_LETTERS, true)) {
                letters.add(letter(letter));
            }
        }
        return letters;
    }

    private static Letter letter(GetResponse letter) {
        Map<String, Object> headers = letter.getProps().getHeaders();
        return Letter.inQueue(
                new Copy(letter.getProps().getMessageId(), (Integer) Objects.requireNonNull(headers.get(Copy.HEADER))),
                Objects.toString(headers.get("x-onceflux-reason"), ""),
                letter.getBody());
    }
}
