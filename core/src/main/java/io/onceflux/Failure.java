package io.onceflux;

import java.time.Clock;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * Why a message was given up.
 *
 * @param kind what kind of failure it was
 * @param messageKey the key of the message, or null if it had no usable one
 * @param reason a sentence for a person, at most {@value #MAX_REASON} characters
 * @param sqlState the SQLSTATE of the last error, or null if the database did not raise it
 * @param attempts how many transactions were started for the message, alone or in a batch with others: what was found to be at fault in a
 *     batch has several, also where it failed for good at once
 * @param time when it was given up
 * @param cause the last error
 */
public record Failure(
        FailureKind kind,
        @Nullable MessageKey messageKey,
        String reason,
        @Nullable String sqlState,
        int attempts,
        Instant time,
        Throwable cause) {

    /** The longest reason, in characters; the rest is cut. */
    public static final int MAX_REASON = 1_000;

    /** Cuts the reason to its bound. */
    public Failure {
        if (reason.length() > MAX_REASON) {
            reason = reason.substring(0, MAX_REASON - 1) + "…";
        }
    }

    /** Of a message at its first attempt, now, which no further one would change. */
    static Failure permanent(MessageKey key, String reason) {
        return new Failure(
                FailureKind.PERMANENT, key, reason, null, 1, Clock.systemUTC().instant(), new PermanentFailure(reason));
    }

    Failure after(int attemptsStarted) {
        return new Failure(kind, messageKey, reason, sqlState, attemptsStarted, time, cause);
    }
}
