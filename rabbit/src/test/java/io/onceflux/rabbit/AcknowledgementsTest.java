package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.Channel;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** A frame for a group says that each delivery up to its tag is done, so it must be true. */
class AcknowledgementsTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final Scheduler broker = BrokerThread.start("acknowledgements-test");
    private final Scheduler loops = Schedulers.newParallel("loop", 4, true);
    private final List<String> frames = new CopyOnWriteArrayList<>();
    private final Set<Long> done = ConcurrentHashMap.newKeySet();
    private final Set<Long> answeredOtherwise = ConcurrentHashMap.newKeySet();
    private final List<Long> tooEarly = new CopyOnWriteArrayList<>();
    private volatile @Nullable IOException failure;

    private final Channel channel = (Channel) Proxy.newProxyInstance(
            getClass().getClassLoader(), new Class<?>[] {Channel.class}, (proxy, method, arguments) -> {
                assertThat(method.getName()).isEqualTo("basicAck");
                IOException failing = failure;
                if (failing != null) {
                    throw failing;
                }
                if (!done.isEmpty() && (Boolean) arguments[1]) {
                    LongStream.rangeClosed(1, (Long) arguments[0])
                            .filter(tag -> !done.contains(tag))
                            .forEach(tooEarly::add);
                }
                frames.add((Boolean) arguments[1] ? "up to " + arguments[0] : String.valueOf(arguments[0]));
                return null;
            });

    private final List<String> unwritten = new CopyOnWriteArrayList<>();

    private final Acknowledgements acknowledgements = new Acknowledgements(broker, () -> channel, 100);

    @AfterEach
    void dispose() {
        loops.dispose();
        broker.dispose();
    }

    /** The broker's thread does nothing until the latch is counted down. */
    private CountDownLatch brokerIsBusy() {
        CountDownLatch over = new CountDownLatch(1);
        broker.schedule(() -> {
            try {
                over.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        return over;
    }

    /** Keeps the broker's thread busy until all of these have been handed over. */
    private CompletableFuture<Void> together(long... tags) {
        CountDownLatch handedOver = brokerIsBusy();
        CompletableFuture<Void> written = Flux.fromStream(LongStream.of(tags).boxed())
                .flatMap(this::acknowledge, Integer.MAX_VALUE)
                .then()
                .toFuture();
        handedOver.countDown();
        return written;
    }

    private Mono<Void> acknowledge(long tag) {
        return acknowledgements.acknowledge(tag, () -> unwritten.add(String.valueOf(tag)));
    }

    private void answerOtherwise(long tag) {
        BrokerThread.call(broker, () -> acknowledgements.hasAnswer(tag)).block(LIMIT);
    }

    @Test
    void oneIsAcknowledgedAtOnceAndAGroupWithoutAGapByOneFrame() {
        assertThat(together(1)).succeedsWithin(LIMIT);
        assertThat(together(4, 2, 3)).succeedsWithin(LIMIT);
        assertThat(frames).containsExactly("1", "up to 4");
    }

    @Test
    void oneThatIsAheadWaitsForThoseBeforeIt() {
        CompletableFuture<Void> ahead = together(2, 3);
        CompletableFuture<Void> first = together(1);
        assertThat(CompletableFuture.allOf(ahead, first)).succeedsWithin(LIMIT);
        assertThat(frames).containsAnyOf("up to 3", "1").doesNotContain("up to 2");
    }

    @Test
    void behindOneThatIsNeverDoneEachIsAcknowledgedByItself() {
        assertThat(together(2, 3, 5)).succeedsWithin(LIMIT);
        assertThat(frames).containsExactly("2", "3", "5");

        assertThat(together(1, 4)).succeedsWithin(LIMIT);
        assertThat(frames).containsExactly("2", "3", "5", "up to 4");
        assertThat(together(6)).succeedsWithin(LIMIT);
        assertThat(frames).endsWith("6");
    }

    @Test
    void moreThanMayWaitAreAcknowledgedAtOnce() {
        CompletableFuture<Void> written =
                together(LongStream.rangeClosed(2, 102).toArray());
        await().until(() -> frames.size() == 101);
        assertThat(written).succeedsWithin(LIMIT);
    }

    @Test
    void whatHadAnotherAnswerIsNoGap() {
        answerOtherwise(2);
        assertThat(together(1, 3)).succeedsWithin(LIMIT);
        assertThat(frames).containsExactly("up to 3");
    }

    /** As where the limit of a settlement passes while it waits for those before it. */
    @Test
    void oneThatNobodyWaitsForAnyMoreIsDoneAndAcknowledgedAllTheSame() {
        CountDownLatch blocked = brokerIsBusy();
        acknowledge(2).subscribe().dispose();
        CompletableFuture<Void> others =
                Mono.when(acknowledge(1), acknowledge(3)).toFuture();
        blocked.countDown();

        assertThat(others).succeedsWithin(LIMIT);
        assertThat(frames).containsExactly("up to 3");
    }

    @Test
    void oneThatIsAskedForAgainIsAcknowledgedOnce() {
        CountDownLatch blocked = brokerIsBusy();
        acknowledge(1).subscribe().dispose();
        CompletableFuture<Void> again = acknowledge(1).toFuture();
        CompletableFuture<Void> ahead = acknowledge(3).toFuture();
        CompletableFuture<Void> aheadAgain = acknowledge(3).toFuture();
        blocked.countDown();

        assertThat(CompletableFuture.allOf(again, ahead, aheadAgain)).succeedsWithin(LIMIT);
        assertThat(acknowledge(1).toFuture()).succeedsWithin(LIMIT);
        assertThat(acknowledge(3).toFuture()).succeedsWithin(LIMIT);
        assertThat(frames).containsExactly("1", "3");
        assertThat(unwritten).isEmpty();
    }

    @Test
    void ofOneThatIsNotWrittenLongAfterEverybodyHasGoneTheChannelIsTold() {
        CountDownLatch stuck = brokerIsBusy();
        acknowledge(1).subscribe().dispose();
        acknowledge(1).subscribe().dispose();
        await().untilAsserted(() -> assertThat(unwritten).containsExactly("1", "1"));
        stuck.countDown();
    }

    @Test
    void whatFollowsOnTheFirstOfAGroupDoesNotMakeTheOthersUnwritten() {
        CountDownLatch handedOver = brokerIsBusy();
        CompletableFuture<Long> first = Flux.just(1L, 2L, 3L)
                .flatMap(tag -> acknowledge(tag).thenReturn(tag), Integer.MAX_VALUE)
                .next()
                .toFuture();
        handedOver.countDown();

        assertThat(first).succeedsWithin(LIMIT).isEqualTo(1L);
        assertThat(frames).containsExactly("up to 3");
        assertThat(unwritten).isEmpty();
    }

    @Test
    void whatWaitsForOthersAsTheSourceIsClosedHearsOfIt() {
        CountDownLatch blocked = brokerIsBusy();
        CompletableFuture<Void> ahead = acknowledge(2).toFuture();
        Mono<Void> closed = broker.disposeGracefully();
        CompletableFuture<Void> closing = closed.toFuture();
        blocked.countDown();

        assertThat(closing).succeedsWithin(LIMIT);
        assertThat(ahead).failsWithin(LIMIT);
        assertThat(frames).isEmpty();
    }

    @Test
    void everyOneOfAGroupHearsOfAFailure() {
        failure = new IOException("gone");
        List<Throwable> errors = new CopyOnWriteArrayList<>();
        Flux.just(1L, 2L, 3L)
                .flatMap(tag -> acknowledge(tag).onErrorResume(error -> {
                    errors.add(error);
                    return Mono.empty();
                }))
                .blockLast(LIMIT);
        assertThat(errors).hasSize(3).allMatch(error -> error == failure);
    }

    @Test
    void fromManyThreadsInAnyOrderEachIsCoveredByAFrameAndNoneThatIsNotDone() {
        Random random = new Random(7);
        List<Long> inTheOrderOfTheirEnd = LongStream.rangeClosed(1, 20_000)
                .boxed()
                .collect(Collectors.toMap(tag -> tag, tag -> tag + random.nextInt(300)))
                .entrySet()
                .stream()
                .sorted(Map.Entry.comparingByValue())
                .map(Map.Entry::getKey)
                .toList();
        Flux.fromIterable(inTheOrderOfTheirEnd)
                .flatMap(tag -> done(tag).subscribeOn(loops), 1_000)
                .then()
                .block(LIMIT);

        Set<Long> covered = new HashSet<>(answeredOtherwise);
        long coveredTo = 0;
        for (String frame : frames) {
            long tag = Long.parseLong(frame.replace("up to ", ""));
            if (frame.startsWith("up to ")) {
                LongStream.rangeClosed(coveredTo + 1, tag).forEach(covered::add);
                coveredTo = tag;
            } else {
                covered.add(tag);
            }
        }
        assertThat(covered).hasSize(20_000);
        assertThat(tooEarly).isEmpty();
        assertThat(frames).anyMatch(frame -> frame.startsWith("up to "));
    }

    private Mono<Void> done(long tag) {
        return Mono.defer(() -> {
            done.add(tag);
            if (tag % 97 != 0) {
                return acknowledge(tag);
            }
            answeredOtherwise.add(tag);
            return BrokerThread.call(broker, () -> acknowledgements.hasAnswer(tag));
        });
    }
}
