package io.onceflux;

import static io.onceflux.Require.given;
import static io.onceflux.Require.writtenDown;

import io.onceflux.postgres.AdmissionTable;
import io.onceflux.postgres.UnfitTableException;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.function.Function;
import org.springframework.transaction.annotation.Isolation;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * An operator's word that a message is to be applied although it is too old: older than the {@link ConsumerBuilder#redeliveryWindow}, or than
 * the oldest partition of the claims. Nobody else can know whether it was applied before; whoever says so has looked.
 *
 * <p>A consumer with an {@link ConsumerBuilder#admissionTable} notes what it refuses for its age, message by message. What is admitted of it is
 * applied, once, when it comes again: its dead letter is replayed.
 *
 * <pre>{@code
 * admissions.admit(MessageKey.of("loyalty", "A-1001"), "anna", "the service was off for nine days; not in the ledger")
 *         .thenMany(letters.replay(letter -> "A-1001".equals(letter.messageKey()), 10))
 *         .subscribe();
 * }</pre>
 *
 * <p>It joins no transaction of its caller. Errors: {@link InvalidSetupException} without the table or a right on it, or the database's own.
 */
public final class Admissions {

    private static final int PAGE = 1_000;
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
     * A message that was refused for its age and is not admitted.
     *
     * @param key its key, as it is kept
     * @param reason why it was refused
     * @param at when, for the first time
     */
    public record Refused(MessageKey key, String reason, Instant at) {}

    /** What a consumer has refused, and nobody has admitted, in the order of the ids; read in pages. */
    public Flux<Refused> refused(String consumer) {
        given("consumer", consumer);
        return page(consumer, "")
                .expand(page -> page.size() < PAGE
                        ? Mono.empty()
                        : page(consumer, page.get(page.size() - 1).id()))
                .concatMapIterable(page -> page)
                .map(row -> new Refused(new MessageKey(consumer, row.id()), row.reason(), row.at()))
                .onErrorStop();
    }

    private Mono<List<AdmissionTable.Refused>> page(String consumer, String after) {
        return onConnection(connection -> table.refused(connection, consumer, after, PAGE));
    }

    /**
     * Admits a message that was refused. It is written down with who and why. A message whose claim is there after all is a duplicate.
     *
     * @param key {@link MessageKey#of} for an id as the producer gave it; {@link MessageKey#MessageKey} for one as it is kept, of a
     *     {@link KeptClaim} or a dead letter
     * @param who for who reads it later, such as a user's name
     * @param why the same, such as a ticket's number
     * @return false if no message with this key was refused, or it was admitted before, whether it has been applied since or not
     */
    public Mono<Boolean> admit(MessageKey key, String who, String why) {
        String note = note("admitted", key, who, why);
        return onConnection(connection -> table.admit(connection, key.consumer(), key.id(), note))
                .onErrorStop();
    }

    /**
     * Takes an admission back, used or not, as {@link KeptClaims#forget} does with a claim: the message counts as one that was refused, and may be
     * admitted again.
     *
     * @return false if it was not admitted
     */
    public Mono<Boolean> forget(MessageKey key, String who, String why) {
        String note = note("forgotten", key, who, why);
        return onConnection(connection -> table.forget(connection, key.consumer(), key.id(), note))
                .onErrorStop();
    }

    private static String note(String what, MessageKey key, String who, String why) {
        given("key", key);
        writtenDown("who", who);
        writtenDown("why", why);
        return "%s by %s: %s".formatted(what, who, why);
    }

    private <R> Mono<R> onConnection(Function<Connection, Mono<R>> work) {
        return transactions
                .withoutTransaction(work)
                .onErrorMap(
                        UnfitTableException.class, e -> new InvalidSetupException(String.valueOf(e.getMessage()), e))
                .contextWrite(CallersTransaction::without);
    }

    @Override
    public String toString() {
        return "Admissions[" + table + "]";
    }
}
