package io.onceflux;

import org.springframework.r2dbc.core.DatabaseClient;

/**
 * What an effect's client knows of the messages whose effect it was given for: for what is written on behalf of a message, such as a row
 * of an outbox.
 */
public interface EffectScope {

    /**
     * That of a client.
     *
     * @param db as an effect is given it
     * @throws IllegalArgumentException if no effect was given it
     */
    static EffectScope of(DatabaseClient db) {
        if (db instanceof EffectClient client) {
            return client.scope();
        }
        throw new IllegalArgumentException(
                "no effect was given this DatabaseClient: use the one that the effect is called with");
    }

    /**
     * The key of the message.
     *
     * @throws IllegalStateException if there are several, as in a {@link BatchEffect}
     */
    MessageKey key();

    /**
     * The key of one of several messages.
     *
     * @param payload the message, as the effect was given it: that object, not one that equals it
     * @throws IllegalArgumentException if it is none of them, or of two of them
     */
    MessageKey keyOf(Object payload);

    /**
     * Whether a key is of one message only. Not where no claims are kept: there a message's id may be that of another, and each runs whenever it
     * comes.
     */
    boolean keysAreClaimed();

    /** Counts for a key, one more with each call. Each attempt begins anew; and what no rows mean counts otherwise than the effect. */
    int next(MessageKey key);
}
