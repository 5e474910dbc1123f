package io.onceflux;

import java.util.Map;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** A delivery whose payload is decoded at most once, when it is first asked for; a failure is kept too. */
final class MappedDelivery<A, B> implements Delivery<B> {

    private final Delivery<A> source;
    private final Decoder<? super A, ? extends B> decoder;
    private @Nullable B payload;
    private @Nullable PermanentFailure failure;

    MappedDelivery(Delivery<A> source, Decoder<? super A, ? extends B> decoder) {
        this.source = source;
        this.decoder = decoder;
    }

    @Override
    public synchronized B payload() {
        if (failure != null) {
            throw failure;
        }
        B decoded = payload;
        if (decoded == null) {
            decoded = decode();
            payload = decoded;
        }
        return decoded;
    }

    private B decode() {
        try {
            B decoded = decoder.decode(source.payload());
            if (decoded == null) {
                throw new PermanentFailure("the decoder returned null");
            }
            return decoded;
        } catch (PermanentFailure e) {
            failure = e;
        } catch (Throwable e) { // An Error of one payload (StackOverflowError on deep nesting) is that payload's fault.
            failure = new PermanentFailure("the payload could not be decoded: " + e, e);
        }
        throw failure;
    }

    @Override
    public @Nullable String id() {
        return source.id();
    }

    @Override
    public @Nullable Object orderingKey() {
        return source.orderingKey();
    }

    @Override
    public Mono<Void> settle(Settlement settlement) {
        return source.settle(settlement);
    }

    @Override
    public boolean isCurrent() {
        return source.isCurrent();
    }

    @Override
    public void handlingBegins() {
        source.handlingBegins();
    }

    @Override
    public void handlingEnded() {
        source.handlingEnded();
    }

    @Override
    public byte @Nullable [] body() {
        return source.body();
    }

    @Override
    public Map<String, String> headers() {
        return source.headers();
    }

    @Override
    public String origin() {
        return source.origin();
    }
}
