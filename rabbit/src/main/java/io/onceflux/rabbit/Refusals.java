package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.MalformedFrameException;
import com.rabbitmq.client.Method;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/** Reads the reply with which the broker closed a channel or connection. */
final class Refusals {

    static final int NOT_FOUND = AMQP.NOT_FOUND;
    static final int PRECONDITION_FAILED = AMQP.PRECONDITION_FAILED;
    static final int ACCESS_REFUSED = AMQP.ACCESS_REFUSED;
    static final int NOT_ALLOWED = AMQP.NOT_ALLOWED;

    private static final int DEEPEST = 16;

    private Refusals() {}

    static boolean isAbout(Throwable error, int replyCode) {
        Throwable at = error;
        for (int depth = 0; at != null && depth < DEEPEST; depth++) {
            if (at instanceof ShutdownSignalException shutdown) {
                return replyCodeOf(shutdown.getReason()) == replyCode;
            }
            at = at.getCause();
        }
        return false;
    }

    /** Whether the connection ended because the client could not read what the broker sent, and not for the connection's own sake. */
    static boolean isUnreadable(Throwable error) {
        Throwable at = error;
        for (int depth = 0; at != null && depth < DEEPEST; depth++) {
            if (at instanceof ShutdownSignalException shutdown) {
                Throwable cause = shutdown.getCause();
                return !shutdown.isInitiatedByApplication()
                        && shutdown.getReason() == null
                        && cause != null
                        && (cause instanceof MalformedFrameException || !(cause instanceof IOException));
            }
            at = at.getCause();
        }
        return false;
    }

    /** The broker's own words; where it said nothing, the root of the error. For a person, never to decide by. */
    static String wordsOf(Throwable error) {
        Throwable at = error;
        for (int depth = 0; depth < DEEPEST; depth++) {
            String text = at instanceof ShutdownSignalException shutdown ? replyTextOf(shutdown.getReason()) : null;
            if (text != null) {
                return text;
            }
            Throwable cause = at.getCause();
            if (cause == null) {
                break;
            }
            at = cause;
        }
        return at.toString();
    }

    private static int replyCodeOf(@Nullable Method reason) {
        if (reason instanceof AMQP.Channel.Close close) {
            return close.getReplyCode();
        }
        return reason instanceof AMQP.Connection.Close close ? close.getReplyCode() : -1;
    }

    private static @Nullable String replyTextOf(@Nullable Method reason) {
        if (reason instanceof AMQP.Channel.Close close) {
            return close.getReplyText();
        }
        return reason instanceof AMQP.Connection.Close close ? close.getReplyText() : null;
    }
}
