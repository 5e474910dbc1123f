package io.onceflux.chaos;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Compares what was published with the books and the dead letters, when all is over. */
final class Checker {

    private final List<Message> published;
    private final Set<String> confirmed;
    private final Set<String> deadLetters;
    private final Map<String, Long> entries;
    private final Set<String> claims;
    private final List<String> wrongBalances;

    Checker(List<Message> published, Set<String> confirmed, Set<String> deadLetters, Books books) {
        this.published = published;
        this.confirmed = confirmed;
        this.deadLetters = deadLetters;
        this.entries = books.entries();
        this.claims = books.claims();
        this.wrongBalances = books.wrongBalances();
    }

    /** Complaints of the run itself come first. */
    Verdict check(Schedule schedule, long faults, List<String> complaintsOfTheRun) {
        return new Verdict(
                schedule.seed(),
                schedule.rounds().size(),
                faults,
                published.size(),
                ids(message -> confirmed.contains(message.id()) && isLost(message)),
                entries.entrySet().stream()
                        .filter(entry -> entry.getValue() > 1)
                        .map(Map.Entry::getKey)
                        .toList(),
                deadLetters.size(),
                (int) published.stream().filter(Message::isPoison).count(),
                Stream.concat(complaintsOfTheRun.stream(), complaints().stream())
                        .toList());
    }

    private boolean isLost(Message message) {
        return message.isPoison() ? !deadLetters.contains(message.id()) : !entries.containsKey(message.id());
    }

    private List<String> complaints() {
        Set<String> known = published.stream().map(Message::id).collect(Collectors.toSet());
        List<String> complaints = new ArrayList<>();
        add(complaints, "never confirmed", ids(message -> !confirmed.contains(message.id())));
        add(complaints, "poison, and applied", ids(message -> message.isPoison() && entries.containsKey(message.id())));
        add(
                complaints,
                "not poison, and a dead letter",
                ids(message -> !message.isPoison() && deadLetters.contains(message.id())));
        add(complaints, "applied without a claim", without(entries.keySet(), claims));
        add(complaints, "claimed and not applied", without(claims, entries.keySet()));
        add(complaints, "applied and never published", without(entries.keySet(), known));
        add(complaints, "dead letters that were never published", without(deadLetters, known));
        add(complaints, "balances that are not the sum of the ledger", wrongBalances);
        return complaints;
    }

    private List<String> ids(Predicate<Message> wanted) {
        return published.stream().filter(wanted).map(Message::id).toList();
    }

    private static List<String> without(Set<String> ids, Set<String> others) {
        return ids.stream().filter(id -> !others.contains(id)).toList();
    }

    private static void add(List<String> complaints, String what, List<String> ids) {
        if (!ids.isEmpty()) {
            complaints.add("%s: %s".formatted(what, Verdict.some(ids)));
        }
    }
}
