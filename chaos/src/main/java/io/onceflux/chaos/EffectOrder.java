package io.onceflux.chaos;

import io.onceflux.chaos.Books.Entry;
import io.onceflux.chaos.consumer.Told;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Whether each process has applied the messages of a customer in the order in which they arrived there.
 *
 * <p>A redelivery is a new arrival with a later number, and what a lost channel leaves without an outcome is a gap in the numbers:
 * neither disturbs this. The place of an effect is that of its row in the ledger, which an attempt that is rolled back does not
 * keep. Not judged: the order of the queue itself (a producer that sends a burst again changes it), of different processes, and of
 * messages that cannot be decoded, which have no customer.
 */
final class EffectOrder {

    private final List<String> broken = new ArrayList<>();
    private int compared;

    /** {@code entries} are the rows of the ledger in the order in which they were written. */
    EffectOrder(List<List<Told>> processes, List<Entry> entries) {
        Map<String, List<Effect>> effects = new HashMap<>();
        for (int place = 0; place < entries.size(); place++) {
            Entry entry = entries.get(place);
            effects.computeIfAbsent(entry.id(), of -> new ArrayList<>())
                    .add(new Effect(entry.id(), entry.customer(), place));
        }
        for (List<Told> process : processes) {
            Map<String, Effect> last = new HashMap<>();
            process.stream()
                    .filter(Told::isApplied)
                    .sorted(Comparator.comparingLong(Told::arrival))
                    .map(told -> effects.getOrDefault(told.copy().id(), List.of()))
                    .filter(found -> found.size() == 1) // Of doubled ones one cannot tell which was this process's.
                    .map(found -> found.get(0))
                    .forEach(effect -> compare(last.put(effect.customer(), effect), effect));
        }
    }

    private void compare(@Nullable Effect earlier, Effect later) {
        if (earlier == null) {
            return;
        }
        compared++;
        if (earlier.place() > later.place()) {
            broken.add(later.id() + " before " + earlier.id());
        }
    }

    List<String> broken() {
        return broken;
    }

    /** How many pairs of neighbours were looked at. */
    int compared() {
        return compared;
    }

    private record Effect(String id, String customer, int place) {}
}
