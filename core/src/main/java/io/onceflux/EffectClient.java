package io.onceflux;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.util.function.Function;
import java.util.function.Supplier;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.r2dbc.core.PreparedOperation;
import org.springframework.r2dbc.core.binding.BindTarget;
import org.springframework.util.Assert;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The client that one effect is given. What it is asked for is done by one that other transactions have used before and others
 * will use after, so each statement asks, when it has its connection, whether this effect is still going on: if it is, the
 * connection is that of its transaction.
 */
final class EffectClient implements DatabaseClient {

    private final DatabaseClient lent;
    private final EffectConnection own;
    private final EffectScope scope;

    /**
     * @param lent on the transaction's connection for as long as the effect goes on
     * @param own the effect's view of that connection
     * @param scope the messages of the effect
     */
    EffectClient(DatabaseClient lent, EffectConnection own, EffectScope scope) {
        this.lent = lent;
        this.own = own;
        this.scope = scope;
    }

    EffectScope scope() {
        return scope;
    }

    @Override
    public ConnectionFactory getConnectionFactory() {
        return own.asFactory();
    }

    @Override
    public GenericExecuteSpec sql(String sql) {
        Assert.hasText(sql, "SQL must not be null or empty");
        return guarded(lent.sql(() -> whileActive(sql)));
    }

    @Override
    public GenericExecuteSpec sql(Supplier<String> sql) {
        Assert.notNull(sql, "SQL Supplier must not be null");
        return guarded(lent.sql(
                sql instanceof PreparedOperation<?> prepared
                        ? new Prepared<>(prepared)
                        : () -> whileActive(sql.get())));
    }

    /** A filter of the user's may keep the statement and run it later. */
    private GenericExecuteSpec guarded(GenericExecuteSpec spec) {
        return spec.filter((statement, next) -> next.execute(own.guard(statement)));
    }

    private String whileActive(String sql) {
        own.requireActive();
        return sql;
    }

    @Override
    public <T> Mono<T> inConnection(Function<Connection, Mono<T>> action) {
        Assert.notNull(action, "Callback object must not be null");
        return lent.inConnection(connection -> action.apply(own));
    }

    @Override
    public <T> Flux<T> inConnectionMany(Function<Connection, Flux<T>> action) {
        Assert.notNull(action, "Callback object must not be null");
        return lent.inConnectionMany(connection -> action.apply(own));
    }

    /** A statement that comes with its parameters bound, as Spring Data's do. */
    private final class Prepared<S> implements PreparedOperation<S> {

        private final PreparedOperation<S> operation;

        Prepared(PreparedOperation<S> operation) {
            this.operation = operation;
        }

        @Override
        public S getSource() {
            return operation.getSource();
        }

        @Override
        public void bindTo(BindTarget target) {
            operation.bindTo(target);
        }

        @Override
        public String toQuery() {
            return whileActive(operation.toQuery());
        }
    }
}
