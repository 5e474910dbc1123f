package io.onceflux;

import io.onceflux.GatherWhileBusy.Batch;
import org.reactivestreams.Publisher;
import org.reactivestreams.tck.PublisherVerification;
import org.reactivestreams.tck.TestEnvironment;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The Reactive Streams TCK: the lane of every batch is freed as soon as it is seen, and then the batch done. */
public class GatherWhileBusyTckTest extends PublisherVerification<Batch<Long>> {

    private static final int LANES = 3;

    public GatherWhileBusyTckTest() {
        super(new TestEnvironment(500, 50));
    }

    @Override
    public Publisher<Batch<Long>> createPublisher(long elements) {
        Flux<Long> numbers = elements >= Integer.MAX_VALUE
                ? Flux.generate(() -> 0L, (n, sink) -> {
                    sink.next(n);
                    return n + 1;
                })
                : Flux.range(0, (int) elements).map(Integer::longValue);
        return new GatherWhileBusy<>(numbers, n -> (int) (n % LANES), new Lanes(LANES), 1, 16, Mono.never(), n -> {})
                .doOnNext(Batch::freeLane)
                .doOnNext(Batch::done);
    }

    @Override
    public Publisher<Batch<Long>> createFailedPublisher() {
        return new GatherWhileBusy<>(
                Flux.<Long>error(new IllegalStateException("fails")),
                n -> 0,
                new Lanes(LANES),
                1,
                16,
                Mono.never(),
                n -> {});
    }

    @Override
    public long maxElementsFromPublisher() {
        return Long.MAX_VALUE - 1;
    }
}
