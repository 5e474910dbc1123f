package io.onceflux.micrometer;

import io.micrometer.observation.Observation;
import io.micrometer.observation.contextpropagation.ObservationThreadLocalAccessor;
import io.onceflux.Delivery;
import io.onceflux.FailureKind;
import io.onceflux.HandlingObserver.Handling;
import io.onceflux.MessageKey;
import io.onceflux.Outcome;
import io.onceflux.micrometer.MessageObservation.Tag;
import java.util.IdentityHashMap;
import java.util.List;
import org.jspecify.annotations.Nullable;
import reactor.util.context.Context;

/** The observations of some messages that are handled together. Each ends with the outcome of its message, or with the handling. */
final class ObservedHandling implements Handling {

    private final IdentityHashMap<Delivery<?>, Observation> open = new IdentityHashMap<>();
    private final IdentityHashMap<Delivery<?>, Observation> all = new IdentityHashMap<>();
    private final Observation common;
    private final @Nullable Observation batch;

    /** @param batch null for one message */
    ObservedHandling(List<? extends Delivery<?>> deliveries, List<Observation> messages, @Nullable Observation batch) {
        for (int i = 0; i < messages.size(); i++) {
            all.put(deliveries.get(i), messages.get(i));
        }
        open.putAll(all);
        this.batch = batch;
        this.common = batch == null ? messages.get(0) : batch;
    }

    @Override
    public Context ofAll(Context context) {
        return context.put(ObservationThreadLocalAccessor.KEY, common);
    }

    @Override
    public Context ofOne(Delivery<?> delivery, MessageKey key, Context context) {
        Observation own = all.get(delivery);
        Context withKey = context.put(MessageKey.class, key);
        return own == null ? withKey : withKey.put(ObservationThreadLocalAccessor.KEY, own);
    }

    @Override
    public void onOutcome(Delivery<?> delivery, Outcome outcome) {
        Observation own = close(delivery);
        if (own == null) {
            return;
        }
        MessageKey key = outcome.key();
        if (key != null) {
            own.highCardinalityKeyValue(Tag.MESSAGE_ID.asString(), key.id());
        }
        if (outcome instanceof Outcome.Failed failed) {
            own.error(failed.failure().cause());
        }
        own.lowCardinalityKeyValue(Tag.OUTCOME.asString(), OutcomeName.of(outcome))
                .stop();
    }

    private synchronized @Nullable Observation close(Delivery<?> delivery) {
        return open.remove(delivery);
    }

    @Override
    public void onRetry(Delivery<?> delivery, FailureKind kind, Throwable error) {
        Observation own = all.get(delivery);
        if (own != null) {
            own.event(Observation.Event.of("onceflux.retry", "again after " + kind));
        }
    }

    @Override
    public void ended() {
        left().forEach(Observation::stop);
        if (batch != null) {
            batch.stop();
        }
    }

    private synchronized List<Observation> left() {
        List<Observation> left = List.copyOf(open.values());
        open.clear();
        return left;
    }
}
