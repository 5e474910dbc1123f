package io.onceflux.testkit;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.R2dbcNonTransientResourceException;
import io.r2dbc.spi.Wrapped;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Set;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;

/** Connections that break at COMMIT, when they are told to. */
final class CrashingConnections implements ConnectionFactory, Wrapped<ConnectionFactory> {

    private final ConnectionFactory connections;
    private final Crashes crashes;

    CrashingConnections(ConnectionFactory connections, Crashes crashes) {
        this.connections = connections;
        this.crashes = crashes;
    }

    @Override
    public Mono<Connection> create() {
        return Mono.<Connection>from(connections.create()).map(this::breakable);
    }

    private Connection breakable(Connection connection) {
        return (Connection) Proxy.newProxyInstance(
                Connection.class.getClassLoader(),
                new Class<?>[] {Connection.class, Wrapped.class},
                new Breakable(connection, crashes));
    }

    @Override
    public ConnectionFactoryMetadata getMetadata() {
        return connections.getMetadata();
    }

    /** Its size is looked at. */
    @Override
    public ConnectionFactory unwrap() {
        return connections;
    }

    /** Everything is the connection's own business but COMMIT; broken, it can only be closed. */
    private static final class Breakable implements InvocationHandler {

        private static final Set<String> ALWAYS = Set.of("close", "unwrap", "toString", "hashCode", "equals");

        private final Connection connection;
        private final Crashes crashes;
        private volatile boolean broken;

        Breakable(Connection connection, Crashes crashes) {
            this.connection = connection;
            this.crashes = crashes;
        }

        @Override
        public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
            if (method.getName().equals("unwrap") && method.getParameterCount() == 0) {
                return connection;
            }
            if (method.getName().equals("commitTransaction")) {
                return Mono.defer(this::commit);
            }
            if (broken
                    && Publisher.class.isAssignableFrom(method.getReturnType())
                    && !ALWAYS.contains(method.getName())) {
                return Mono.error(gone());
            }
            try {
                return method.invoke(method.getDeclaringClass() == Wrapped.class ? proxy : connection, arguments);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }

        private Mono<Void> commit() {
            if (broken) {
                return Mono.error(gone());
            }
            if (crashes.happenAt(Step.BEFORE_COMMIT)) {
                broken = true;
                return Mono.from(connection.rollbackTransaction()).then(Mono.error(gone()));
            }
            Mono<Void> commit = Mono.from(connection.commitTransaction());
            if (crashes.happenAt(Step.AFTER_COMMIT)) {
                broken = true;
                return commit.then(Mono.error(gone()));
            }
            return commit;
        }

        private static R2dbcNonTransientResourceException gone() {
            return new R2dbcNonTransientResourceException("the connection is gone", "08006");
        }
    }
}
