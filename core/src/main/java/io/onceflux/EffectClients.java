package io.onceflux;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.reactivestreams.Publisher;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.r2dbc.core.binding.BindMarkersFactory;
import reactor.core.publisher.Mono;

/**
 * Spring's clients, lent to one transaction at a time. A client of its own for each effect would start with an empty cache of
 * parsed SQL, and make that first: a tenth of what group commit took in this process (docs/decisions/0012).
 */
final class EffectClients {

    private static final BindMarkersFactory POSTGRES_MARKERS = BindMarkersFactory.indexed("$", 1);

    private final Queue<Lent> idle = new ConcurrentLinkedQueue<>();

    /** A client for the effects of one transaction; to be given back when they have ended. */
    Lent lend(AttemptConnection transaction) {
        TransactionView connection = new TransactionView(transaction, () -> "an effect");
        Lent lent = idle.poll();
        if (lent == null) {
            lent = new Lent(connection);
        } else {
            lent.connection = connection;
        }
        transaction.bind(lent, connection);
        return lent;
    }

    void giveBack(Lent lent) {
        lent.connection.end(); // And stays: who comes too late gets a connection that is of no use.
        idle.add(lent);
    }

    /** A client that has no way to another connection than the transaction's, whatever the Reactor context says. */
    static final class Lent implements ConnectionFactory {

        private final DatabaseClient client = DatabaseClient.builder()
                .connectionFactory(this)
                .bindMarkers(POSTGRES_MARKERS)
                .build();

        private volatile TransactionView connection;

        private Lent(TransactionView first) {
            this.connection = first;
        }

        /**
         * For one effect of the transaction.
         *
         * @param effect the effect's own view of the connection, ended when the effect ends
         * @param scope the messages of the effect
         */
        DatabaseClient to(EffectConnection effect, EffectScope scope) {
            return new EffectClient(client, effect, scope);
        }

        @Override
        public Publisher<? extends Connection> create() {
            return Mono.fromSupplier(() -> connection);
        }

        @Override
        public ConnectionFactoryMetadata getMetadata() {
            return () -> "PostgreSQL";
        }
    }
}
