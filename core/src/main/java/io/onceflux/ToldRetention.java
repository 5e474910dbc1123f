package io.onceflux;

import io.onceflux.Retention.Progress;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;

/** Tells a user's {@link RetentionListener} of runs, and keeps what it throws away from them. */
final class ToldRetention {

    private static final Logger log = LoggerFactory.getLogger(Retention.class);

    private final RetentionListener listener;

    ToldRetention(RetentionListener listener) {
        this.listener = listener;
    }

    Flux<Progress> telling(Flux<Progress> run) {
        return Flux.defer(() -> {
            AtomicReference<@Nullable Progress> last = new AtomicReference<>();
            return run.doOnNext(progress -> {
                        Progress before = last.getAndSet(progress);
                        long removed = progress.removed() - (before == null ? 0 : before.removed());
                        tell(told -> told.onProgress(removed, progress.done()));
                    })
                    .doOnComplete(() -> {
                        if (last.get() != null) {
                            tell(RetentionListener::onEnded);
                        }
                    })
                    .doOnError(error -> tell(told -> told.onFailed(error)));
        });
    }

    private void tell(Consumer<RetentionListener> call) {
        try {
            call.accept(listener);
        } catch (Throwable e) { // An Error too: it would end the run.
            log.warn("the listener of a retention threw; the run is not affected", e);
        }
    }
}
