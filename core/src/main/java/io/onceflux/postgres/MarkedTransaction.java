package io.onceflux.postgres;

import io.r2dbc.postgresql.api.PostgresTransactionDefinition;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Option;
import io.r2dbc.spi.TransactionDefinition;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * A transaction that a statement can recognise: a statement that is sent behind BEGIN, without waiting for the answer. It would
 * run by itself if BEGIN failed and the connection lived on: cancelled in just that moment, or refused by a pooler that
 * stands between.
 *
 * <p>The mark is DEFERRABLE, which BEGIN can say at no cost, and which means nothing to a transaction that can write.
 * Source: https://www.postgresql.org/docs/current/sql-set-transaction.html
 */
public final class MarkedTransaction {

    /** True in a marked transaction, and nowhere else unless default_transaction_deferrable is on. */
    private static final String IS_UNDER_WAY = "current_setting('transaction_deferrable') = 'on'";

    private MarkedTransaction() {}

    /** SQL for a value of set_config's that is one only in a marked transaction. */
    static String ifUnderWay(String value) {
        return "CASE WHEN " + IS_UNDER_WAY + " THEN " + value + " ELSE 'BEGIN did not succeed' END";
    }

    /**
     * Begins a marked transaction.
     *
     * @param connection a connection without a transaction
     * @param definition of a transaction that can write
     * @return completes when the transaction has begun, or fails with the driver's or the database's own error
     */
    public static Mono<Void> begin(Connection connection, TransactionDefinition definition) {
        return Mono.defer(() -> Mono.from(connection.beginTransaction(new Marked(definition))));
    }

    private record Marked(TransactionDefinition definition) implements TransactionDefinition {

        @Override
        public <V> @Nullable V getAttribute(Option<V> option) {
            return option.equals(PostgresTransactionDefinition.DEFERRABLE)
                    ? option.cast(true)
                    : definition.getAttribute(option);
        }
    }
}
