package io.onceflux.chaos;

import static io.onceflux.chaos.FaultKind.CUT_AFTER_COMMIT;
import static io.onceflux.chaos.FaultKind.CUT_BEFORE_ACK;
import static io.onceflux.chaos.FaultKind.CUT_BEFORE_COMMIT;
import static io.onceflux.chaos.FaultKind.KILL_AFTER_COMMIT;
import static io.onceflux.chaos.FaultKind.KILL_AT_ACK;
import static io.onceflux.chaos.FaultKind.KILL_AT_COMMIT;
import static io.onceflux.chaos.FaultKind.KILL_CONSUMER;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Which faults a run draws from, and how close they come. */
enum Mix {
    /** Every kind, and those of the moments that matter more often. */
    ALL(10),
    /** Crashes of consumers and cuts around COMMIT and acknowledgement, in short rounds. */
    CRASHES(4);

    private final int roundSeconds;

    Mix(int roundSeconds) {
        this.roundSeconds = roundSeconds;
    }

    /** How long a round lasts, if its faults do not need longer. */
    int roundSeconds() {
        return roundSeconds;
    }

    int faultsOfARound(Random random) {
        return switch (this) {
            case ALL -> List.of(1, 1, 2, 2, 2, 3).get(random.nextInt(6));
            case CRASHES -> 2 + random.nextInt(2);
        };
    }

    /** Dealt to the end before it is shuffled again, so that a short run already meets many kinds. */
    List<FaultKind> deck() {
        List<FaultKind> deck =
                new ArrayList<>(List.of(KILL_CONSUMER, CUT_BEFORE_COMMIT, CUT_AFTER_COMMIT, CUT_BEFORE_ACK));
        deck.addAll(
                switch (this) {
                    case ALL -> List.of(FaultKind.values());
                    case CRASHES -> List.of(KILL_CONSUMER, KILL_AT_COMMIT, KILL_AFTER_COMMIT, KILL_AT_ACK);
                });
        return deck;
    }
}
