package io.onceflux.chaos;

import io.onceflux.chaos.consumer.Copy;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** Which copies of which messages were sent, and which of them the broker has confirmed. */
final class Copies {

    private final Map<String, Integer> sent = new HashMap<>();
    private final Set<Copy> confirmed = new TreeSet<>();

    /** A copy that is about to be sent. */
    synchronized Copy next(String id) {
        return new Copy(id, sent.merge(id, 1, Integer::sum));
    }

    synchronized void confirm(Collection<Copy> copies) {
        confirmed.addAll(copies);
    }

    synchronized Set<Copy> confirmed() {
        return new TreeSet<>(confirmed);
    }

    /** The messages that have a confirmed copy. */
    synchronized Set<String> confirmedMessages() {
        return confirmed.stream().map(Copy::id).collect(Collectors.toSet());
    }

    /** The confirmed messages that were sent just once. */
    synchronized Set<String> sentOnce() {
        return confirmed.stream()
                .map(Copy::id)
                .filter(id -> sent.getOrDefault(id, 0) == 1)
                .collect(Collectors.toSet());
    }
}
