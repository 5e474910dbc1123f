package io.onceflux;

import static io.onceflux.Require.given;
import static io.onceflux.Require.that;

import io.onceflux.postgres.AdmissionTable;
import io.onceflux.postgres.UnfitTableException;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import org.springframework.transaction.annotation.Isolation;
import reactor.core.publisher.Mono;

/**
 * An operator's word that a message is to be applied although it is too old: older than the {@link ConsumerBuilder#redeliveryWindow}, or than
 * the oldest partition of the claims. Nobody else can know whether it was applied before; whoever says so has looked.
 *
 * <p>A consumer with an {@link ConsumerBuilder#admissionTable} then applies it, once, when it comes again: a dead letter is replayed.
 *
 * <pre>{@code
 * admissions.admit(MessageKey.of("loyalty", "A-1001"), "anna", "the consumer was off for nine days; not in the ledger")
 *         .thenMany(letters.replay(letter -> letter.messageKey().equals("A-1001"), 10))
 *         .subscribe();
 * }</pre>
 *
 * <p>It joins no transaction of its caller. Errors: {@link InvalidSetupException} without the table or a right on it, or the database's own.
 */
public final class Admissions {

    private static final Duration CONTROL_LIMIT = Duration.ofSeconds(10);

    private final AdmissionTable table;
    private final Transactions transactions;

    private Admissions(AdmissionTable table, ConnectionFactory connections) {
        this.table = table;
        this.transactions = new Transactions(connections, Isolation.READ_COMMITTED, CONTROL_LIMIT);
    }

    /** Those in a table. */
    public static Admissions in(AdmissionTable table, ConnectionFactory connections) {
        return new Admissions(given("table", table), given("connections", connections));
    }

    /**
     * Admits a message. It is written down with who and why, and stays so. A message whose claim is there is a duplicate all the same.
     *
     * @param key {@link MessageKey#of} for an id as the producer gave it; {@link MessageKey#MessageKey} for one as it is kept, of a
     *     {@link KeptClaim} or a dead letter
     * @param who for who reads it later, such as a user's name
     * @param why the same, such as a ticket's number
     * @return false if it was admitted before, whether it has come since or not
     */
    public Mono<Boolean> admit(MessageKey key, String who, String why) {
        given("key", key);
        that(!given("who", who).isBlank(), "who must not be blank: it is written down for who asks later");
        that(!given("why", why).isBlank(), "why must not be blank: it is written down for who asks later");
        return transactions
                .withoutTransaction(connection -> table.admit(connection, key.consumer(), key.id(), who, why))
                .onErrorMap(
                        UnfitTableException.class, e -> new InvalidSetupException(String.valueOf(e.getMessage()), e))
                .contextWrite(CallersTransaction::without)
                .onErrorStop();
    }

    @Override
    public String toString() {
        return "Admissions[" + table + "]";
    }
}
