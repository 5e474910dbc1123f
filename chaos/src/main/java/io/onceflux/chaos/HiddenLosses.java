package io.onceflux.chaos;

import io.onceflux.chaos.Books.Entry;
import io.onceflux.chaos.consumer.Copy;
import io.onceflux.chaos.consumer.Told;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * Losses that something else has put right, so that the books and the dead letters look as if nothing had been lost.
 *
 * <ul>
 *   <li>Another copy of the message makes up for it, sent on purpose or with a burst that was not confirmed in time. So every copy
 *       that the broker has confirmed must have an outcome of its own in the log of a consumer, which is written before the broker
 *       is told; and every confirmed copy of poison must have been stored as a dead letter.
 *   <li>A copy or a redelivery applies again what was told as applied and is gone. So a message must not have been told as applied
 *       more often than it has rows.
 *   <li>A copy is applied while another was given up and its dead letter is lost. So nobody must have given up a message that is no
 *       poison.
 * </ul>
 *
 * <p>Not seen:
 *
 * <ul>
 *   <li>an acknowledgement that came too early and was forgotten by the broker, which delivered the message again;
 *   <li>a duplicate that was told when nothing was committed yet, if a copy was applied later;
 *   <li>in a table, a dead letter that is missing for one copy while another copy's was stored twice by a crash;
 *   <li>what the database or the broker would lose after the check: neither is restarted once more.
 * </ul>
 *
 * <p>None of the copies can hide anything for the messages that were sent once and confirmed: {@link Copies#sentOnce()}.
 */
final class HiddenLosses {

    private final Copies copies;
    private final List<Told> told;
    private final Map<String, Message> published;

    HiddenLosses(Copies copies, List<Told> told, Collection<Message> published) {
        this.copies = copies;
        this.told = told;
        this.published = published.stream().collect(Collectors.toMap(Message::id, message -> message));
    }

    /** Confirmed copies that have left the queue, and no consumer had anything to say of them. */
    List<Copy> withoutOutcome() {
        Set<Copy> withOutcome = told.stream().map(Told::copy).collect(Collectors.toSet());
        return copies.confirmed().stream()
                .filter(copy -> !withOutcome.contains(copy))
                .toList();
    }

    /** Messages that were told as applied more often than they are in the ledger. */
    List<String> appliedAndGone(List<Entry> entries) {
        Map<String, Integer> missing = new HashMap<>();
        told.stream()
                .filter(Told::isApplied)
                .forEach(one -> missing.merge(one.copy().id(), 1, Integer::sum));
        entries.forEach(entry -> missing.merge(entry.id(), -1, Integer::sum));
        return missing.entrySet().stream()
                .filter(one -> one.getValue() > 0)
                .map(Map.Entry::getKey)
                .sorted()
                .toList();
    }

    /** Confirmed copies of poison that are no dead letter in the queue, and more than the table has counted. */
    List<Copy> notStored(List<Letter> letters) {
        Set<Copy> inQueue = new TreeSet<>();
        Map<String, Integer> inTable = new HashMap<>();
        for (Letter letter : letters) {
            Copy copy = letter.copy();
            if (copy != null) {
                inQueue.add(copy);
            } else {
                inTable.merge(letter.id(), letter.times(), Integer::sum);
            }
        }
        List<Copy> missing = new ArrayList<>();
        for (Copy copy : copies.confirmed()) {
            if (isPoison(copy) && !inQueue.contains(copy) && inTable.merge(copy.id(), -1, Integer::sum) < 0) {
                missing.add(copy);
            }
        }
        return missing;
    }

    /** Copies that were given up, and are no poison. */
    List<Copy> givenUp() {
        return told.stream()
                .filter(Told::isFailed)
                .map(Told::copy)
                .filter(copy -> !isPoison(copy))
                .distinct()
                .toList();
    }

    private boolean isPoison(Copy copy) {
        Message message = published.get(copy.id());
        return message != null && message.isPoison();
    }
}
