package io.onceflux;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The messages of one call of an effect. */
final class MessagesInScope implements EffectScope {

    private static final Logger log = LoggerFactory.getLogger(IdempotentConsumer.class);
    private static final AtomicBoolean warned = new AtomicBoolean();

    /** Further than any effect counts. */
    static final int BEHIND_THE_EFFECT = 1 << 30;

    private final List<? extends Message<?>> messages;
    private final boolean claimed;
    private final int first;
    private @Nullable Map<MessageKey, Integer> counts;

    /**
     * @param claimed whether their keys are
     * @param first what is counted from: what runs in place of the effect is never to be taken for it
     */
    MessagesInScope(List<? extends Message<?>> messages, boolean claimed, int first) {
        this.messages = messages;
        this.claimed = claimed;
        this.first = first;
    }

    @Override
    public MessageKey key() {
        if (messages.size() != 1) {
            if (warned.compareAndSet(
                    false, true)) { // The batch is taken apart until it works, and nobody would see why it is slow.
                log.warn(
                        "an effect of several messages does not say for which of them it writes something (an entry of an outbox: appendFor)."
                                + " Each batch fails for it, and its messages are handled one by one");
            }
            throw new IllegalStateException(
                    "the effect has %d messages: say which one is meant".formatted(messages.size()));
        }
        return messages.get(0).requireKey();
    }

    @Override
    @SuppressWarnings("ReferenceEquality") // Two messages may say the same.
    public MessageKey keyOf(Object payload) {
        List<MessageKey> found = messages.stream()
                .filter(message -> message.delivery().payload() == payload)
                .map(Message::requireKey)
                .toList();
        if (found.size() != 1) {
            throw new IllegalArgumentException(
                    found.isEmpty()
                            ? "this is none of the messages of the effect: give it as the effect was given it"
                            : "%d messages of the effect have this object as their payload".formatted(found.size()));
        }
        return found.get(0);
    }

    @Override
    public boolean keysAreClaimed() {
        return claimed;
    }

    @Override
    public synchronized int next(MessageKey key) {
        Map<MessageKey, Integer> counted = counts;
        if (counted == null) { // Most effects never ask.
            counted = new HashMap<>();
            counts = counted;
        }
        return first + counted.merge(key, 1, Integer::sum) - 1;
    }
}
