package io.onceflux.chaos;

import io.onceflux.chaos.Books.Entry;
import io.onceflux.chaos.consumer.Copy;
import io.onceflux.chaos.consumer.Told;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * Compares what was published with the books, the dead letters, and what the consumers have told, when all is over. What may hide a
 * loss, and what of that is not seen, is said by {@link HiddenLosses}; what is judged of the order, by {@link EffectOrder}.
 */
final class Checker {

    private final Map<String, Message> published = new TreeMap<>();
    private final Copies copies;
    private final List<Letter> letters;
    private final List<List<Told>> processes;
    private final List<Entry> entries;
    private final Map<String, Integer> rows = new TreeMap<>();
    private final Map<String, Long> balances;
    private final Optional<Set<String>> claims;
    private final Set<String> confirmed;
    private final Set<String> deadLetters = new TreeSet<>();
    private final HiddenLosses hidden;

    /** {@code processes} is what each process of a consumer has told. */
    Checker(List<Message> published, Copies copies, List<Letter> letters, List<List<Told>> processes, Books books) {
        published.forEach(message -> this.published.put(message.id(), message));
        this.copies = copies;
        this.letters = letters;
        this.processes = processes;
        this.entries = books.entries();
        entries.forEach(entry -> rows.merge(entry.id(), 1, Integer::sum));
        this.balances = books.balances();
        this.claims = books.claims();
        this.confirmed = copies.confirmedMessages();
        letters.forEach(letter -> deadLetters.add(letter.id()));
        this.hidden = new HiddenLosses(
                copies, processes.stream().flatMap(List::stream).toList(), published);
    }

    /** Complaints of the run itself come first. */
    Verdict check(Schedule schedule, long faults, List<String> complaintsOfTheRun) {
        EffectOrder order = new EffectOrder(processes, entries);
        List<String> complaints = new ArrayList<>(complaintsOfTheRun);
        complainOfCopies(complaints);
        complainOfMessages(complaints);
        complainOfDeadLetters(complaints);
        complainOfBalances(complaints);
        add(complaints, "applied in another order than they arrived", order.broken());
        return new Verdict(
                schedule.seed(),
                schedule.rounds().size(),
                faults,
                published.size(),
                lost(),
                rows.entrySet().stream()
                        .filter(row -> row.getValue() > 1)
                        .map(Map.Entry::getKey)
                        .toList(),
                deadLetters.size(),
                ids(Message::isPoison).size(),
                complaints,
                notes(order));
    }

    private List<String> lost() {
        Set<String> lost = new TreeSet<>(ids(this::isMissing));
        Stream.concat(hidden.withoutOutcome().stream(), hidden.notStored(letters).stream())
                .map(Copy::id)
                .forEach(lost::add);
        lost.addAll(hidden.appliedAndGone(entries));
        return List.copyOf(lost);
    }

    private boolean isMissing(Message message) {
        return confirmed.contains(message.id())
                && (message.isPoison() ? !deadLetters.contains(message.id()) : !rows.containsKey(message.id()));
    }

    private void complainOfCopies(List<String> complaints) {
        add(complaints, "left the queue without an outcome", hidden.withoutOutcome());
        add(complaints, "told as applied more often than they are in the ledger", hidden.appliedAndGone(entries));
        add(complaints, "copies of poison that are no dead letter", hidden.notStored(letters));
        add(complaints, "not poison, and given up", hidden.givenUp());
    }

    private void complainOfMessages(List<String> complaints) {
        add(complaints, "never confirmed", ids(message -> !confirmed.contains(message.id())));
        add(complaints, "poison, and applied", ids(message -> message.isPoison() && rows.containsKey(message.id())));
        claims.ifPresent(claimed -> {
            add(complaints, "applied without a claim", without(rows.keySet(), claimed));
            add(complaints, "claimed and not applied", without(claimed, rows.keySet()));
        });
        add(complaints, "applied and never published", without(rows.keySet(), published.keySet()));
        add(
                complaints,
                "applied with another customer or other points than published",
                entries.stream().filter(this::isWrong).map(Entry::id).toList());
    }

    private boolean isWrong(Entry entry) {
        Message message = published.get(entry.id());
        return message != null && !(message.customer().equals(entry.customer()) && message.points() == entry.points());
    }

    private void complainOfDeadLetters(List<String> complaints) {
        add(
                complaints,
                "not poison, and a dead letter",
                ids(message -> !message.isPoison() && deadLetters.contains(message.id())));
        add(complaints, "dead letters that were never published", without(deadLetters, published.keySet()));
        add(complaints, "dead letters with another body than published", idsOfLetters(this::isAltered));
        add(
                complaints,
                "dead letters without a reason",
                idsOfLetters(letter -> letter.reason().isBlank()));
    }

    private boolean isAltered(Letter letter) {
        Message message = published.get(letter.id());
        return message != null && !Arrays.equals(message.body(), letter.body());
    }

    private void complainOfBalances(List<String> complaints) {
        Map<String, Long> ofLedger = new HashMap<>();
        entries.forEach(entry -> ofLedger.merge(entry.customer(), entry.points(), Long::sum));
        Map<String, Long> ofPublished = new HashMap<>();
        published.values().stream()
                .filter(message -> !message.isPoison())
                .forEach(message -> ofPublished.merge(message.customer(), message.points(), Long::sum));
        add(complaints, "balances that are not the sum of the ledger", balancesOtherThan(ofLedger));
        add(complaints, "balances that are not the sum of what was published", balancesOtherThan(ofPublished));
    }

    private List<String> balancesOtherThan(Map<String, Long> sums) {
        return Stream.concat(balances.keySet().stream(), sums.keySet().stream())
                .distinct()
                .filter(customer -> !balances.getOrDefault(customer, 0L).equals(sums.getOrDefault(customer, 0L)))
                .sorted()
                .toList();
    }

    private List<String> notes(EffectOrder order) {
        long givenUp = processes.stream()
                .flatMap(List::stream)
                .filter(Told::isFailed)
                .map(Told::copy)
                .distinct()
                .count();
        return List.of(
                "sent once and confirmed, so that no copy can hide a loss: %d of %d messages"
                        .formatted(copies.sentOnce().size(), published.size()),
                "confirmed: %d copies, each to have an outcome of its own"
                        .formatted(copies.confirmed().size()),
                "dead letters: stored %d times, for %d copies that were given up"
                        .formatted(letters.stream().mapToInt(Letter::times).sum(), givenUp),
                "order: %d effects compared with the one before, of the same customer in the same process"
                        .formatted(order.compared()));
    }

    private List<String> ids(Predicate<Message> wanted) {
        return published.values().stream().filter(wanted).map(Message::id).toList();
    }

    private List<String> idsOfLetters(Predicate<Letter> wanted) {
        return letters.stream().filter(wanted).map(Letter::id).distinct().toList();
    }

    private static List<String> without(Set<String> ids, Set<String> others) {
        return ids.stream().filter(id -> !others.contains(id)).toList();
    }

    private static void add(List<String> complaints, String what, Collection<?> found) {
        if (!found.isEmpty()) {
            complaints.add("%s: %s".formatted(what, Verdict.some(found)));
        }
    }
}
