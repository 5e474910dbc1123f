package io.onceflux.micrometer;

import io.micrometer.observation.transport.Kind;
import io.micrometer.observation.transport.Propagator;
import io.micrometer.observation.transport.ReceiverContext;
import io.onceflux.Delivery;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The context of the observation of a message: its trace goes on from where the message's headers say. */
public final class MessageContext extends ReceiverContext<Delivery<?>> {

    private final String consumer;

    MessageContext(String consumer, Delivery<?> delivery) {
        super(new HeadersOnce(), Kind.CONSUMER);
        this.consumer = consumer;
        setCarrier(delivery);
    }

    /** The name of the consumer. */
    public String consumer() {
        return consumer;
    }

    /** Several are asked for, one after the other, and the source makes all of them each time. */
    private static final class HeadersOnce implements Propagator.Getter<Delivery<?>> {

        private @Nullable Map<String, String> headers;

        @Override
        public @Nullable String get(Delivery<?> delivery, String name) {
            Map<String, String> all = headers;
            if (all == null) {
                all = delivery.headers();
                headers = all;
            }
            return all.get(name);
        }
    }
}
