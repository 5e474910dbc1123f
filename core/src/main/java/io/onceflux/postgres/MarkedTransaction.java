package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.TransactionDefinition;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * A transaction that carries a mark for as long as it lasts, so that a statement which is sent behind BEGIN, without waiting for
 * the answer, can tell whether it runs in it. It would run by itself if BEGIN failed and the connection lived on: cancelled
 * in just that moment, or refused by a pooler that stands between.
 */
public final class MarkedTransaction {

    /** A parameter that the server does not know, and keeps as it is given. */
    private static final String MARK = "onceflux.transaction";

    /** True in a marked transaction, and nowhere else. */
    static final String IS_UNDER_WAY = "current_setting('" + MARK + "', true) = 'on'";

    private MarkedTransaction() {}

    /**
     * Begins a marked transaction, with one query. The mark goes with the transaction.
     *
     * @param connection a connection without a transaction
     * @param definition its isolation level is used; the transaction can write
     * @return completes when the transaction has begun, or fails with the database's own error
     */
    public static Mono<Void> begin(Connection connection, TransactionDefinition definition) {
        return Mono.defer(
                () -> Flux.from(connection.createStatement(sql(definition)).execute())
                        .concatMap(Result::getRowsUpdated)
                        .then());
    }

    private static String sql(TransactionDefinition definition) {
        IsolationLevel isolation = definition.getAttribute(TransactionDefinition.ISOLATION_LEVEL);
        return "BEGIN%s READ WRITE; SET LOCAL %s = 'on'"
                .formatted(isolation == null ? "" : " ISOLATION LEVEL " + isolation.asSql(), MARK);
    }
}
