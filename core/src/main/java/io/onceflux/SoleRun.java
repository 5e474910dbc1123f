package io.onceflux;

import io.onceflux.postgres.AdvisoryLock;
import io.onceflux.postgres.Server;
import java.util.function.Function;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Something that one of all instances does at a time: whoever has an advisory lock, which belongs to a transaction that stays open
 * meanwhile. That works behind a pooler of transactions too, where a session's lock would not. Between its statements the transaction has no
 * snapshot (READ COMMITTED), so it holds up no vacuum.
 */
final class SoleRun {

    private SoleRun() {}

    /**
     * Does the work, or nothing if another instance is at it. It takes one connection more than the work.
     *
     * @param lock what tells it from other work
     * @param work given what fails if the lock has been lost meanwhile, with its connection; to be asked now and then
     */
    static <R> Flux<R> of(Transactions transactions, long lock, Function<Mono<Void>, Flux<R>> work) {
        return transactions.inOpenTransaction((connection, limit) -> Limits.within(
                        limit, new AdvisoryLock(lock).take(connection))
                .filter(alone -> alone)
                .flatMapMany(alone -> work.apply(Limits.within(limit, Server.requireAnswer(connection)))));
    }
}
