package io.onceflux;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The messages of one batch that have no outcome yet, in parts that are each attempted as one transaction. Parts stand in the
 * order of their messages; one that has to wait is passed by those with other ordering keys. An unusable message is a part of
 * its own, behind those before it that have its ordering key.
 *
 * <p>Copies of a message are not attempted: they share what becomes of it, unless that is a failure and they have another body. What has its
 * key and another fingerprint is a part of its own, behind it.
 */
final class Worklist<T> {

    /**
     * Messages that are attempted together.
     *
     * @param judge what their failures lead to
     * @param attempts how many transactions were started for them, alone or with others
     * @param notBefore when they may be attempted again, on the clock of {@link Attempts}
     */
    record Part<T>(List<Message<T>> messages, Judge judge, int attempts, long notBefore) {

        Part<T> attempted() {
            return new Part<>(messages, judge, attempts + 1, notBefore);
        }

        Part<T> waitingUntil(long time) {
            return new Part<>(messages, judge, attempts, time);
        }
    }

    private final Function<List<Message<T>>, Judge> judges;
    private final Observed observed;
    private final List<Part<T>> parts = new ArrayList<>();
    private final IdentityHashMap<Message<T>, List<Message<T>>> copies = new IdentityHashMap<>();

    /**
     * @param copiesShare whether messages with a key that another has before them are copies of it
     * @param observed their handling
     * @param judges makes the judge of messages that are attempted together for the first time
     */
    Worklist(
            List<Message<T>> messages,
            boolean copiesShare,
            Observed observed,
            Function<List<Message<T>>, Judge> judges) {
        this.judges = judges;
        this.observed = observed;
        if (messages.size() == 1) {
            add(messages);
            return;
        }
        Map<MessageKey, Message<T>> firsts = new HashMap<>(2 * messages.size());
        List<Message<T>> usable = new ArrayList<>(messages.size());
        for (Message<T> message : messages) {
            MessageKey key = message.key();
            if (message.unusable() != null || key == null) {
                if (usable.stream().anyMatch(before -> before.order() == message.order())) {
                    add(usable);
                    usable = new ArrayList<>();
                }
                add(List.of(message));
                continue;
            }
            Message<T> first = copiesShare ? firsts.putIfAbsent(key, message) : null;
            if (first == null) {
                usable.add(message);
            } else if (Objects.equals(message.fingerprint(), first.fingerprint())) {
                copies.computeIfAbsent(first, of -> new ArrayList<>()).add(message);
            } else { // Which of them is the message, the claim says.
                if (!usable.isEmpty()) {
                    add(usable);
                    usable = new ArrayList<>();
                }
                add(List.of(message));
            }
        }
        if (!usable.isEmpty()) {
            add(usable);
        }
    }

    private void add(List<Message<T>> messages) {
        parts.add(new Part<>(messages, judges.apply(messages), 0, Long.MIN_VALUE));
    }

    Observed observed() {
        return observed;
    }

    synchronized boolean isEmpty() {
        return parts.isEmpty();
    }

    /** The first part that may be attempted now; null if each has to wait, or stands behind one that has to. */
    synchronized @Nullable Part<T> ready(long now) {
        if (parts.size() == 1) {
            Part<T> only = parts.get(0);
            return only.notBefore <= now ? only : null;
        }
        Set<Integer> held = new HashSet<>();
        for (int at = 0; at < parts.size(); at++) {
            Part<T> part = parts.get(at);
            if (part.notBefore <= now) {
                List<Message<T>> free = part.messages.stream()
                        .filter(message -> !held.contains(message.order()))
                        .toList();
                if (free.size() == part.messages.size()) {
                    return part;
                }
                if (!free.isEmpty()) {
                    return apart(at, free);
                }
            }
            part.messages.forEach(message -> held.add(message.order()));
        }
        return null;
    }

    /** Those of a part that need not wait for one before it become a part of their own, and the others stay. */
    private Part<T> apart(int at, List<Message<T>> free) {
        Part<T> before = parts.get(at);
        Part<T> apart = new Part<>(free, judges.apply(free), before.attempts, before.notBefore);
        setRest(at, before, without(before, free));
        parts.add(at, apart);
        return apart;
    }

    private void setRest(int at, Part<T> before, List<Message<T>> rest) {
        parts.set(at, new Part<>(rest, judges.apply(rest), before.attempts, before.notBefore));
    }

    /** By identity, not by key: a message may have none. */
    private static <T> List<Message<T>> without(Part<T> part, List<Message<T>> some) {
        Set<Message<T>> gone = Collections.newSetFromMap(new IdentityHashMap<>());
        gone.addAll(some);
        return part.messages.stream().filter(message -> !gone.contains(message)).toList();
    }

    /** When the first of those that have to wait may be attempted; now if none has to. */
    synchronized long readyAt(long now) {
        return parts.stream()
                .mapToLong(Part::notBefore)
                .filter(time -> time > now)
                .min()
                .orElse(now);
    }

    List<Message<T>> copiesOf(Message<T> message) {
        return copies.isEmpty() ? List.of() : copies.getOrDefault(message, List.of());
    }

    /** What passed for a copy is attempted by itself, in front of what stood behind the message whose copy it was. */
    synchronized void attemptApart(Message<T> copy) {
        List<Message<T>> alone = List.of(copy);
        parts.add(0, new Part<>(alone, judges.apply(alone), 0, Long.MIN_VALUE));
    }

    /** Takes a part off the list, as its messages have their outcome. */
    synchronized void finish(Part<T> part) {
        int at = indexOf(part);
        if (at >= 0) {
            parts.remove(at);
        }
    }

    /** The part has to be attempted again, with what is known of it now; false if {@link #close} came first. */
    synchronized boolean again(Part<T> part) {
        int at = indexOf(part);
        if (at >= 0) {
            parts.set(at, part);
        }
        return at >= 0;
    }

    /** Takes off a part those whose channel is lost, and the copies of those. */
    synchronized List<Message<T>> dropLost(Part<T> part) {
        List<Message<T>> lost =
                part.messages.stream().filter(message -> !message.isCurrent()).toList();
        take(part, lost);
        return withCopies(lost);
    }

    private List<Message<T>> withCopies(List<Message<T>> messages) {
        List<Message<T>> all = new ArrayList<>();
        for (Message<T> message : messages) {
            all.add(message);
            all.addAll(copiesOf(message));
        }
        return all;
    }

    /** Takes some messages off a part. */
    synchronized void take(Part<T> part, List<Message<T>> some) {
        int at = indexOf(part);
        if (at < 0) {
            return;
        }
        List<Message<T>> rest = without(part, some);
        if (rest.isEmpty()) {
            parts.remove(at);
        } else {
            setRest(at, part, rest);
        }
    }

    /** Splits a part around the message that failed, or in the middle where it is not known which one did. */
    synchronized void split(Part<T> part, @Nullable Message<T> failed) {
        int at = indexOf(part);
        if (at >= 0) {
            parts.remove(at);
            parts.addAll(at, smaller(part, failed));
        }
    }

    /** The list of its messages is what makes it this part; -1 if it is no longer there. */
    private int indexOf(Part<T> part) {
        for (int at = 0; at < parts.size(); at++) {
            if (parts.get(at).messages == part.messages) {
                return at;
            }
        }
        return -1;
    }

    private List<Part<T>> smaller(Part<T> part, @Nullable Message<T> failed) {
        List<List<Message<T>>> pieces = failed == null ? halves(part.messages) : around(failed, part.messages);
        List<Part<T>> smaller = new ArrayList<>(pieces.size());
        for (List<Message<T>> piece : pieces) {
            if (!piece.isEmpty()) {
                List<Message<T>> own = List.copyOf(piece);
                smaller.add(new Part<>(own, judges.apply(own), part.attempts, Long.MIN_VALUE));
            }
        }
        return smaller;
    }

    private static <T> List<List<Message<T>>> halves(List<Message<T>> messages) {
        int size = messages.size();
        return List.of(messages.subList(0, size / 2), messages.subList(size / 2, size));
    }

    @SuppressWarnings("ReferenceEquality") // Equality would ask the source's deliveries.
    private static <T> List<List<Message<T>>> around(Message<T> failed, List<Message<T>> messages) {
        int at = 0;
        while (messages.get(at) != failed) { // Not by key: others may have it, where claims are not kept.
            at++;
        }
        return List.of(
                messages.subList(0, at), messages.subList(at, at + 1), messages.subList(at + 1, messages.size()));
    }

    /** Ends it: what has no outcome yet will have none. */
    synchronized List<Message<T>> close() {
        List<Message<T>> left =
                parts.stream().flatMap(part -> part.messages.stream()).toList();
        parts.clear();
        return withCopies(left);
    }
}
