package io.onceflux;

import io.onceflux.GatherWhileBusy.Batch;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** Outcomes on their way to the subscriber: as long as it has not taken them, their messages are held. */
final class TakenOutcomes implements Iterable<Outcome> {

    private final List<Outcome> outcomes;
    private final OfBatch ofBatch;

    private TakenOutcomes(List<Outcome> outcomes, OfBatch ofBatch) {
        this.outcomes = outcomes;
        this.ofBatch = ofBatch;
    }

    /** Iterated once, by Reactor, which asks for the end as soon as it has emitted the last one. */
    @Override
    public Iterator<Outcome> iterator() {
        Iterator<Outcome> all = outcomes.iterator();
        return new Iterator<>() {

            private boolean over;

            @Override
            public boolean hasNext() {
                if (all.hasNext()) {
                    return true;
                }
                if (!over) {
                    over = true;
                    ofBatch.ended();
                }
                return false;
            }

            @Override
            public Outcome next() {
                return all.next();
            }
        };
    }

    /** Gives the items of a batch back when that has ended and all of its outcomes are taken. */
    static final class OfBatch {

        private final Batch<?> batch;
        private final AtomicInteger open = new AtomicInteger(1);

        OfBatch(Batch<?> batch) {
            this.batch = batch;
        }

        TakenOutcomes told(List<Outcome> outcomes) {
            open.incrementAndGet();
            return new TakenOutcomes(outcomes, this);
        }

        /** The batch, or some outcomes of it. */
        void ended() {
            if (open.decrementAndGet() == 0) {
                batch.done();
            }
        }
    }
}
