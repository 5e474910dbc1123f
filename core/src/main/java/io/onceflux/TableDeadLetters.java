package io.onceflux;

import io.onceflux.postgres.DeadLetterRow;
import io.onceflux.postgres.DeadLetterTable;
import io.r2dbc.spi.R2dbcBadGrammarException;
import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.R2dbcPermissionDeniedException;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Puts dead letters into a {@link DeadLetterTable}, before their source is told. */
final class TableDeadLetters {

    private final DeadLetterTable table;
    private final Transactions transactions;
    private final String consumer;

    TableDeadLetters(DeadLetterTable table, Transactions transactions, String consumer) {
        this.table = table;
        this.transactions = transactions;
        this.consumer = consumer;
    }

    /** Does once, and rolls back, all that will have to be done with the table. */
    Mono<Void> verify() {
        DeadLetterRow trial = new DeadLetterRow(
                0, 0, consumer, null, null, "", "", "", null, 0, Instant.EPOCH, Map.of(), new byte[0]);
        return transactions
                .inRolledBackTransaction(connection -> table.store(connection, trial)
                        .then(table.last(connection, consumer))
                        .flatMap(number -> table.page(connection, consumer, number - 1, 1))
                        .flatMap(rows -> table.remove(connection, rows.get(0))))
                .onErrorMap(R2dbcBadGrammarException.class, this::unfit)
                .onErrorMap(R2dbcPermissionDeniedException.class, this::unfit);
    }

    private InvalidSetupException unfit(R2dbcException error) {
        return new InvalidSetupException(
                ("Table %s cannot keep dead letters (%s: %s). It must be as this makes it, and the role needs SELECT, INSERT, UPDATE"
                                + " and DELETE on it: %s")
                        .formatted(
                                table,
                                error.getSqlState(),
                                error.getMessage(),
                                table.createSql().strip()),
                error);
    }

    /** Completes when it is committed. */
    Mono<Void> store(Delivery<?> delivery, byte[] body, Failure failure) {
        return Mono.defer(() -> {
            DeadLetterRow row = new DeadLetterRow(
                    0,
                    0,
                    consumer,
                    failure.messageKey() == null ? null : failure.messageKey().id(),
                    usableId(delivery),
                    storable(delivery.origin()),
                    failure.kind().name(),
                    storable(failure.reason()),
                    failure.sqlState(),
                    failure.attempts(),
                    failure.time(),
                    storable(delivery.headers()),
                    body);
            return transactions
                    .inTransaction(connection -> table.store(connection, row).thenReturn(true))
                    .then();
        });
    }

    /** The id that the replayed message is to have; none, if it could never be a key. */
    private @Nullable String usableId(Delivery<?> delivery) {
        try {
            String id = delivery.id();
            if (id != null) {
                MessageKey.refuseUnusable(id);
            }
            return id;
        } catch (RuntimeException e) { // That is why it became a dead letter.
            return null;
        }
    }

    private static Map<String, String> storable(Map<String, String> headers) {
        Map<String, String> storable = new LinkedHashMap<>();
        headers.forEach((name, value) -> storable.put(storable(name), storable(value)));
        return storable;
    }

    /** PostgreSQL's text holds no NUL, and what a person reads must not keep a dead letter from being stored. */
    private static String storable(String text) {
        return text.replace('\0', '\uFFFD');
    }

    /** As a user sees them. */
    DeadLetters handledBy(Function<Flux<Delivery<byte[]>>, Flux<Outcome>> handler) {
        return new StoredDeadLetters(table, transactions, consumer, handler);
    }
}
