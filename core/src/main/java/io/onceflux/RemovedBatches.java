package io.onceflux;

import io.onceflux.Retention.Progress;
import io.onceflux.postgres.OldClaims;
import java.time.Duration;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** {@link Retention} of a table without partitions: one pass through it, a batch a transaction. */
final class RemovedBatches {

    private final Transactions transactions;
    private final OldClaims claims;
    private final Duration kept;
    private final int batchSize;
    private final Duration pause;
    private final Duration lockTimeout;

    RemovedBatches(
            Transactions transactions,
            OldClaims claims,
            Duration kept,
            int batchSize,
            Duration pause,
            Duration lockTimeout) {
        this.transactions = transactions;
        this.claims = claims;
        this.kept = kept;
        this.batchSize = batchSize;
        this.pause = pause;
        this.lockTimeout = lockTimeout;
    }

    Flux<Progress> run() {
        return transactions
                .withoutTransaction(
                        connection -> Limits.within(Retention.TIME_LIMIT, claims.plan(connection, kept, batchSize)))
                .flatMapMany(plan -> plan.pieces().isEmpty()
                        ? Flux.just(new Progress(0, 1))
                        : SoleRun.of(transactions, plan.lock(), stillAlone -> {
                            Run run = new Run(plan, stillAlone);
                            return run.step(0, 0).expand(run::next).map(run::progress);
                        }));
    }

    private final class Run {

        private final OldClaims.Plan plan;
        private final Mono<Void> stillAlone;

        Run(OldClaims.Plan plan, Mono<Void> stillAlone) {
            this.plan = plan;
            this.stillAlone = stillAlone;
        }

        /**
         * What has been done.
         *
         * @param next the piece that is to be looked through next
         * @param before how many claims the run has removed
         * @param removed how many of them last
         */
        private record Step(int next, long before, long removed) {}

        /** Empty if there is no such piece. */
        Mono<Step> step(int piece, long before) {
            if (piece == plan.pieces().size()) {
                return Mono.empty();
            }
            return stillAlone
                    .then(transactions.inTransaction(connection -> Limits.within(
                            Retention.TIME_LIMIT,
                            claims.bound(connection, lockTimeout)
                                    .then(claims.remove(
                                            connection, plan, plan.pieces().get(piece), batchSize)))))
                    .map(removed -> new Step(removed < batchSize ? piece + 1 : piece, before + removed, removed));
        }

        Mono<Step> next(Step last) {
            Mono<Step> next = Mono.defer(() -> step(last.next(), last.before()));
            return last.removed() == 0 || pause.isZero()
                    ? next
                    : Mono.delay(pause).then(next);
        }

        Progress progress(Step step) {
            return new Progress(
                    step.before(), (double) step.next() / plan.pieces().size());
        }
    }
}
