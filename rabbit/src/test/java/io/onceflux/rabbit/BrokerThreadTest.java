package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** BlockHound watches the threads that ask, as it may in a user's tests: one that it stops there would leave the broker's asleep. */
class BrokerThreadTest {

    @Test
    void threadsThatMustNotBlockMayAskForManyCallsAtOnce() {
        Scheduler broker = BrokerThread.start("broker-thread-test");
        AtomicInteger calls = new AtomicInteger();
        Set<String> threads = ConcurrentHashMap.newKeySet();
        try {
            Long done = Flux.range(0, 4)
                    .flatMap(asking -> Flux.range(0, 100_000)
                            .doOnNext(n -> broker.schedule(() -> {
                                calls.incrementAndGet();
                                threads.add(Thread.currentThread().getName());
                            }))
                            .subscribeOn(Schedulers.parallel()))
                    .count()
                    .block(Duration.ofSeconds(60));

            assertThat(done).isEqualTo(400_000);
            await().atMost(Duration.ofSeconds(30))
                    .untilAsserted(() -> assertThat(calls).hasValue(400_000));
            assertThat(threads).containsExactly("broker-thread-test");
        } finally {
            broker.dispose();
        }
    }
}
