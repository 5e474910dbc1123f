package io.onceflux;

import io.onceflux.postgres.AdvisoryLock;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.IsolationLevel;
import java.time.Duration;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Something that one of all instances does at a time: whoever has an advisory lock, which belongs to a transaction that stays open
 * meanwhile. That works behind a pooler of transactions too, where a session's lock would not. Between its statements the transaction has no
 * snapshot (READ COMMITTED), so it holds up no vacuum.
 */
final class SoleRun {

    private static final Logger log = LoggerFactory.getLogger(SoleRun.class);

    private SoleRun() {}

    /**
     * Does the work, or nothing if another instance is at it. It takes one connection more than the work.
     *
     * @param lock what tells it from other work
     * @param limit for each step of the lock
     * @param work given what fails if the lock has been lost meanwhile, with its connection; to be asked now and then
     */
    static <R> Flux<R> of(
            ConnectionFactory connections, long lock, Duration limit, Function<Mono<Void>, Flux<R>> work) {
        return Flux.usingWhen(
                Limits.within(limit, Mono.<Connection>from(connections.create())),
                connection -> Limits.within(limit, isAlone(connection, lock))
                        .filter(alone -> alone)
                        .flatMapMany(alone -> work.apply(Limits.within(limit, AdvisoryLock.requireThere(connection)))),
                connection -> end(connection, limit),
                (connection, error) -> end(connection, limit),
                connection -> end(connection, limit));
    }

    private static Mono<Boolean> isAlone(Connection connection, long lock) {
        return Flux.from(connection.beginTransaction(IsolationLevel.READ_COMMITTED))
                .then(new AdvisoryLock(lock).take(connection));
    }

    private static Mono<Void> end(Connection connection, Duration limit) {
        return Limits.within(limit, Flux.from(connection.rollbackTransaction()).then())
                .onErrorResume(error -> {
                    log.debug("the end of a lock was not confirmed", error);
                    return Mono.empty();
                })
                .then(Mono.defer(() -> Flux.from(connection.close()).then()));
    }
}
