package io.onceflux.rabbit;

import com.rabbitmq.client.Channel;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * Acknowledgements through one channel, in groups: deliveries that are done without a gap between them are acknowledged with one
 * frame. One that is ahead of another that is not done waits a moment for it, and is then acknowledged by itself.
 *
 * <p>A frame for a group acknowledges everything up to its tag, so it is sent only if each delivery up to there is done, or has
 * had another answer.
 *
 * <p>What is asked for is sent, even if nobody waits for it any more: the delivery is done. It is sent once, even if it is asked for
 * again, because the broker closes a channel on which a delivery is acknowledged twice.
 */
final class Acknowledgements {

    private static final Logger log = LoggerFactory.getLogger(Acknowledgements.class);

    /** One waits once or twice as long for those before it: some commits, and as many redeliveries more after a crash. */
    private static final long PATIENCE_MILLIS = 10;

    /** What nobody waits for any more gets so long to be written. Longer than a wait for others; the broker is then stuck. */
    private static final long GRACE_MILLIS = 1_000;

    private final Scheduler broker;
    private final Callable<Channel> channel;
    private final int most;
    private final Queue<Due> arrived = new ConcurrentLinkedQueue<>();
    private final AtomicBoolean scheduled = new AtomicBoolean();

    // From here on for the broker's thread alone.
    private final TreeMap<Long, Due> waiting = new TreeMap<>();
    private final AnsweredTags answered = new AnsweredTags();
    private boolean willLookAgain;

    /**
     * @param broker the thread for calls to the broker
     * @param channel gives the channel, or throws if it is lost
     * @param most so many wait at most
     */
    Acknowledgements(Scheduler broker, Callable<Channel> channel, int most) {
        this.broker = broker;
        this.channel = channel;
        this.most = most;
    }

    /**
     * Acknowledges a delivery that is done; completes, on the broker's thread, when that is written.
     *
     * @param onUnwritten called if it is cancelled, and not written for a second after that either
     */
    Mono<Void> acknowledge(long tag, Runnable onUnwritten) {
        return Mono.create(sink -> {
            arrived.add(new Due(tag, sink, onUnwritten));
            if (scheduled.compareAndSet(false, true)) {
                broker.schedule(this::send);
            }
        });
    }

    /** A delivery has had another answer. On the broker's thread. */
    void hasAnswer(long tag) {
        answered.add(tag);
    }

    private void send() {
        scheduled.set(false);
        for (Due due = arrived.poll(); due != null; due = arrived.poll()) {
            take(due);
        }
        sendGroup();
        if (waiting.size() > most) {
            sendEach(due -> true);
        }
        lookAgainIfNeeded();
    }

    private void take(Due due) {
        if (answered.has(due.tag)) {
            due.noteWritten();
            due.succeeded();
            return;
        }
        Due before = waiting.put(due.tag, due);
        due.askedBefore = before;
        due.hasWaited = before != null && before.hasWaited;
    }

    private void lookAgainIfNeeded() {
        if (waiting.isEmpty() || willLookAgain) {
            return;
        }
        try {
            broker.schedule(this::lookAgain, PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
            willLookAgain = true;
        } catch (RejectedExecutionException e) { // The source is closed: nobody writes any more.
            List<Due> tooLate = List.copyOf(waiting.values());
            waiting.clear();
            tooLate.forEach(due -> due.failed(e));
        }
    }

    private void lookAgain() {
        willLookAgain = false;
        sendEach(due -> due.hasWaited);
        waiting.values().forEach(due -> due.hasWaited = true);
        lookAgainIfNeeded();
    }

    /** Those that follow, without a gap, on what has been answered. */
    private void sendGroup() {
        List<Due> group = new ArrayList<>();
        answered.advance(tag -> takeInto(group, tag));
        if (!group.isEmpty()) {
            write(group);
        }
    }

    private boolean takeInto(List<Due> group, long tag) {
        Due due = waiting.remove(tag);
        return due != null && group.add(due);
    }

    private void sendEach(Predicate<Due> chosen) {
        List<Due> each = waiting.values().stream().filter(chosen).toList();
        for (Due due : each) {
            waiting.remove(due.tag);
            answered.add(due.tag);
            write(List.of(due));
        }
    }

    private void write(List<Due> group) {
        try {
            channel.call().basicAck(group.get(group.size() - 1).tag, group.size() > 1);
        } catch (Throwable e) { // An Error too, or its callers would wait for a signal that never comes.
            group.forEach(due -> due.failed(e));
            return;
        }
        // All of them, before what follows on the first can cancel the others.
        group.forEach(Due::noteWritten);
        group.forEach(Due::succeeded);
    }

    /** An acknowledgement that is due. */
    private static final class Due {

        private final long tag;
        private final Runnable onUnwritten;
        private final MonoSink<Void> caller;
        private volatile boolean cancelled;
        private volatile boolean written;
        private boolean hasWaited;

        /** The same, by somebody who has likely gone. */
        private @Nullable Due askedBefore;

        Due(long tag, MonoSink<Void> caller, Runnable onUnwritten) {
            this.tag = tag;
            this.onUnwritten = onUnwritten;
            this.caller = caller.onCancel(this::cancel);
        }

        private void cancel() {
            cancelled = true;
            if (!written) {
                Schedulers.parallel().schedule(this::tellIfUnwritten, GRACE_MILLIS, TimeUnit.MILLISECONDS);
            }
        }

        private void tellIfUnwritten() {
            if (!written) {
                onUnwritten.run();
            }
        }

        private void noteWritten() {
            written = true;
            if (askedBefore != null) {
                askedBefore.noteWritten();
            }
        }

        private void succeeded() {
            if (askedBefore != null) {
                askedBefore.succeeded();
            }
            try {
                caller.success();
            } catch (Throwable e) { // Of what comes after it; the others of the group have a right to their signals.
                log.error("what follows on an acknowledgement failed", e);
            }
        }

        private void failed(Throwable error) {
            if (askedBefore != null) {
                askedBefore.failed(error);
            }
            if (cancelled) {
                log.debug("an acknowledgement that nobody waits for any more failed", error);
                return;
            }
            try {
                caller.error(error);
            } catch (Throwable e) {
                log.error("what follows on an acknowledgement that failed, failed", e);
            }
        }
    }
}
