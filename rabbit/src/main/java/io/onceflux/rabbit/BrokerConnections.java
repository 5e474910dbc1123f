package io.onceflux.rabbit;

import com.rabbitmq.client.AuthenticationFailureException;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import io.onceflux.InvalidSetupException;
import java.io.IOException;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** Opens connections that do not recover by themselves: what depends on one is opened anew with it. Knows those that are open. */
final class BrokerConnections {

    /** The client's own ten minutes keep a thread for longer than any stop may take. */
    private static final int LONGEST_ANSWER = 30_000;

    /** RabbitMQ takes messages of up to 512 MiB, whatever it is told; the client takes those that are smaller than this. */
    private static final int LARGEST_BODY = 512 * 1024 * 1024 + 1;

    private final ConnectionFactory factory;
    private final String user;
    private final Set<BrokerConnection> open = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    BrokerConnections(RabbitOptions options) {
        this(options.connectionFactory(), options.queue());
    }

    /** @param user what they are for, as the broker's operator sees it */
    BrokerConnections(ConnectionFactory users, String user) {
        this.factory = users.clone();
        this.factory.setAutomaticRecoveryEnabled(false);
        this.factory.setTopologyRecoveryEnabled(false);
        int answer = factory.getChannelRpcTimeout(); // 0 is for ever.
        this.factory.setChannelRpcTimeout(answer == 0 ? LONGEST_ANSWER : Math.min(answer, LONGEST_ANSWER));
        if (largestBody(factory)
                == largestBody(new ConnectionFactory())) { // A larger one would stop its queue for ever.
            this.factory.setMaxInboundMessageBodySize(LARGEST_BODY);
        }
        this.user = user;
    }

    /** The factory alone does not tell it. */
    private static int largestBody(ConnectionFactory of) {
        return of.params(null).getMaxInboundMessageBodySize();
    }

    /**
     * Blocks.
     *
     * @throws InvalidSetupException if the broker refuses the login
     */
    BrokerConnection openNow(String purpose) throws IOException {
        AtomicReference<@Nullable Socket> socket = new AtomicReference<>();
        BrokerConnection connection = new BrokerConnection(connect(purpose, socket), socket.get(), open::remove);
        open.add(connection);
        if (closed) { // In the meantime.
            connection.cut();
            throw new IOException("the source is closed");
        }
        return connection;
    }

    private Connection connect(String purpose, AtomicReference<@Nullable Socket> socket) throws IOException {
        ConnectionFactory once = factory.clone();
        once.setSocketConfigurator(factory.getSocketConfigurator().andThen(socket::set));
        try {
            return once.newConnection("onceflux " + user + " " + purpose);
        } catch (TimeoutException e) {
            throw new IOException("the broker did not answer in time", e);
        } catch (IOException e) {
            if (refusesLogin(e)) {
                throw new InvalidSetupException(
                        "RabbitMQ at %s refuses the login: check user, password and virtual host of the ConnectionFactory."
                                .formatted(RabbitOptions.broker(factory)),
                        e);
            }
            throw e;
        }
    }

    /** Cuts those that are still open, and those that are being opened as soon as they are. */
    Mono<Void> close() {
        return Flux.defer(() -> {
                    closed = true;
                    return Flux.fromIterable(open);
                })
                .flatMap(connection -> Mono.fromRunnable(connection::cut).subscribeOn(Schedulers.boundedElastic()))
                .then();
    }

    /**
     * By the broker's own word. The client's {@code PossibleAuthenticationFailureException} is a guess of its own: the connection was lost
     * during the login, as it is when a broker shuts down just then.
     */
    private static boolean refusesLogin(IOException error) {
        return error instanceof AuthenticationFailureException
                || Refusals.isAbout(error, Refusals.NOT_ALLOWED)
                || Refusals.isAbout(error, Refusals.ACCESS_REFUSED);
    }
}
