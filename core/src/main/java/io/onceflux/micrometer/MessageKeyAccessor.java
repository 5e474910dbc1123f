package io.onceflux.micrometer;

import io.micrometer.context.ThreadLocalAccessor;
import io.onceflux.LogContext;
import io.onceflux.MessageKey;
import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;

/**
 * Has the consumer and the message's id in the MDC while the code of an effect runs, where Reactor propagates its context. Found by
 * Micrometer's context-propagation, which alone needs it.
 */
public final class MessageKeyAccessor implements ThreadLocalAccessor<MessageKey> {

    private static final ThreadLocal<@Nullable MessageKey> CURRENT = new ThreadLocal<>();

    /** For the service loader. */
    public MessageKeyAccessor() {}

    @Override
    public Object key() {
        return MessageKey.class;
    }

    @Override
    public @Nullable MessageKey getValue() {
        return CURRENT.get();
    }

    @Override
    public void setValue(MessageKey key) {
        CURRENT.set(key);
        MDC.put(LogContext.CONSUMER, LogContext.printable(key.consumer()));
        MDC.put(LogContext.KEY, LogContext.printable(key.id()));
    }

    @Override
    public void setValue() {
        CURRENT.remove();
        MDC.remove(LogContext.CONSUMER);
        MDC.remove(LogContext.KEY);
    }
}
