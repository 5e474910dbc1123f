package io.onceflux.chaos;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;

/** The faults of a run, round by round. It depends on its seed, its length and the mix alone. */
record Schedule(long seed, Mix mix, List<List<Fault>> rounds) {

    static Schedule of(long seed, int rounds, Mix mix) {
        return of(seed, rounds, mix, Set.of());
    }

    /** @param without kinds that cannot be had */
    static Schedule of(long seed, int rounds, Mix mix, Set<FaultKind> without) {
        Random random = new Random(seed);
        Deque<FaultKind> dealt = new ArrayDeque<>();
        List<List<Fault>> schedule = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            int count = mix.faultsOfARound(random);
            List<Fault> faults = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                faults.add(Fault.draw(deal(dealt, mix, without, random), random));
            }
            schedule.add(List.copyOf(faults));
        }
        return new Schedule(seed, mix, List.copyOf(schedule));
    }

    private static FaultKind deal(Deque<FaultKind> dealt, Mix mix, Set<FaultKind> without, Random random) {
        if (dealt.isEmpty()) {
            List<FaultKind> deck = mix.deck();
            deck.removeAll(without);
            Collections.shuffle(deck, random);
            dealt.addAll(deck);
        }
        return dealt.removeFirst();
    }

    /** A line a round. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < rounds.size(); i++) {
            text.append("round %d: %s%n".formatted(i + 1, describe(rounds.get(i))));
        }
        return text.toString();
    }

    static String describe(List<Fault> faults) {
        return faults.stream().map(Fault::toString).collect(Collectors.joining("; "));
    }
}
