package io.onceflux.rabbit;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import java.io.IOException;
import java.net.Socket;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * A connection that ends when it is told to, whatever a thread is stuck in with it. The client's own abort says good-bye first:
 * behind a thread that writes to a socket which takes no more, it waits for as long as that.
 */
final class BrokerConnection {

    private static final Logger log = LoggerFactory.getLogger(BrokerConnection.class);

    private static final Pattern FIRST_NUMBER = Pattern.compile("\\d{1,6}");

    private final Connection client;
    private final @Nullable Socket socket;
    private final Consumer<BrokerConnection> whenEnded;

    /**
     * A connection of the client.
     *
     * @param socket null where the client uses NIO or Netty, whose writes give up by themselves
     */
    BrokerConnection(Connection client, @Nullable Socket socket, Consumer<BrokerConnection> whenEnded) {
        this.client = client;
        this.socket = socket;
        this.whenEnded = whenEnded;
    }

    Connection client() {
        return client;
    }

    /** Whether the broker is RabbitMQ of this major version, or a later one. */
    boolean isRabbitMqSince(int major) {
        Map<String, Object> broker = client.getServerProperties();
        String version = broker == null ? "" : String.valueOf(broker.get("version"));
        Matcher number = FIRST_NUMBER.matcher(version);
        return broker != null
                && String.valueOf(broker.get("product")).equals("RabbitMQ")
                && number.lookingAt()
                && Integer.parseInt(number.group()) >= major;
    }

    /** Blocks until the broker has opened a channel. */
    Channel openChannel() throws IOException {
        Channel channel = client.createChannel();
        if (channel == null) {
            throw new IOException("the connection has no channel left");
        }
        return channel;
    }

    /** Blocks until the broker has agreed, or the limit has passed and the socket is closed. Does not fail. */
    void abort(Duration limit) {
        Scheduler watch = BrokerThread.start("onceflux-rabbit-abort");
        try {
            watch.schedule(this::closeSocket, limit.toMillis(), TimeUnit.MILLISECONDS);
            endClient(limit);
        } finally {
            watch.dispose();
        }
    }

    /** Cuts the connection after a time, unless what is returned is disposed before. */
    Disposable cutAfter(Duration limit) {
        return Schedulers.boundedElastic().schedule(this::cut, limit.toMillis(), TimeUnit.MILLISECONDS);
    }

    /** Closes the socket under whoever uses it, who gets an error. Blocks for a second or two at most. Does not fail. */
    void cut() {
        closeSocket();
        endClient(Duration.ofSeconds(1));
    }

    private void endClient(Duration limit) {
        try {
            client.abort((int) limit.toMillis());
        } catch (RuntimeException e) {
            log.debug("a connection did not end as it should", e);
        } finally {
            whenEnded.accept(this);
        }
    }

    private void closeSocket() {
        if (socket != null) {
            try {
                socket.setSoLinger(true, 1); // Else closing TLS waits for the thread that writes.
                socket.close();
            } catch (IOException e) {
                log.debug("closing the socket failed", e);
            }
        }
    }
}
