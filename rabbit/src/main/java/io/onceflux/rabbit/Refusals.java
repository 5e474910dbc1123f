package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Method;
import com.rabbitmq.client.ShutdownSignalException;
import org.jspecify.annotations.Nullable;

/** Reads the reply code with which the broker closed a channel or connection. */
final class Refusals {

    static final int NOT_FOUND = AMQP.NOT_FOUND;
    static final int PRECONDITION_FAILED = AMQP.PRECONDITION_FAILED;
    static final int ACCESS_REFUSED = AMQP.ACCESS_REFUSED;
    static final int NOT_ALLOWED = AMQP.NOT_ALLOWED;

    private Refusals() {}

    static boolean isAbout(Throwable error, int replyCode) {
        Throwable at = error;
        for (int depth = 0; at != null && depth < 16; depth++) {
            if (at instanceof ShutdownSignalException shutdown) {
                return replyCodeOf(shutdown.getReason()) == replyCode;
            }
            at = at.getCause();
        }
        return false;
    }

    private static int replyCodeOf(@Nullable Method reason) {
        if (reason instanceof AMQP.Channel.Close close) {
            return close.getReplyCode();
        }
        return reason instanceof AMQP.Connection.Close close ? close.getReplyCode() : -1;
    }
}
