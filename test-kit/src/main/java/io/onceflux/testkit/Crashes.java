package io.onceflux.testkit;

import java.util.EnumSet;
import java.util.Random;
import java.util.Set;

/** Decides what breaks. */
final class Crashes {

    private Random random = new Random(0);
    private Set<Step> steps = EnumSet.noneOf(Step.class);
    private double share;
    private long count;

    synchronized void begin(Random byThis, double shareOfDeliveries, Set<Step> at) {
        this.random = byThis;
        this.share = shareOfDeliveries;
        this.steps = at;
        this.count = 0;
    }

    synchronized void end() {
        steps = EnumSet.noneOf(Step.class);
    }

    synchronized boolean happenAt(Step step) {
        boolean happens = steps.contains(step) && random.nextDouble() < share;
        if (happens) {
            count++;
        }
        return happens;
    }

    synchronized long count() {
        return count;
    }
}
