package io.onceflux.chaos;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;

/** One run: messages flow, faults strike by the schedule, and when all is quiet the checker compares. */
final class Rig {

    private static final int MESSAGES_A_SECOND = 60;
    private static final Duration START_LIMIT = Duration.ofSeconds(60);
    /** Faults have ended: time for what is left to be published, and for some of it to be handled. */
    private static final Duration QUIET_LIMIT = Duration.ofSeconds(90);

    private static final Duration POLL = Duration.ofMillis(200);

    private final Schedule schedule;
    private final boolean byPosition;
    private final Site site;
    private final Path logs;
    private final Progress progress;
    private final Messages messages;
    private final Injector injector;
    private final List<Message> published = new ArrayList<>();
    private final List<String> complaints = new ArrayList<>();

    /**
     * {@code logs} is where the consumers write theirs.
     *
     * @param byPosition whether a copy would be another message, so that the producer sends none
     */
    Rig(Schedule schedule, boolean byPosition, Site site, Path logs, Progress progress) {
        this.schedule = schedule;
        this.byPosition = byPosition;
        this.site = site;
        this.logs = logs;
        this.progress = progress;
        this.messages =
                new Messages(schedule.seed(), MESSAGES_A_SECOND * schedule.mix().roundSeconds(), !byPosition);
        this.injector = new Injector(site);
    }

    Verdict run() throws Exception {
        site.consumers().start();
        if (!within(START_LIMIT, () -> site.place().consumers() == Consumers.COUNT)) {
            throw new IllegalStateException("The consumers did not start.");
        }
        progress.say("%d consumers are up", Consumers.COUNT);
        try (Producer producer = new Producer(site.place().outlet(!byPosition))) {
            for (int round = 0; round < schedule.rounds().size(); round++) {
                round(round, producer);
            }
            becomeQuiet(producer);
            List<Letter> deadLetters = new ArrayList<>(site.place().takeDeadLetters());
            deadLetters.addAll(site.books().deadLetters());
            Checker checker =
                    new Checker(published, producer.copies(), deadLetters, ConsumerLogs.read(logs), site.books());
            complaints.addAll(site.consumers().complaints());
            return checker.check(schedule, injector.tally().faults(), complaints);
        }
    }

    String table() {
        return injector.tally().table();
    }

    private void round(int round, Producer producer) throws InterruptedException {
        Duration length = Duration.ofSeconds(schedule.mix().roundSeconds());
        long end = System.nanoTime() + length.toNanos();
        published.addAll(messages.distinct(round));
        producer.publish(messages.publications(round), length.multipliedBy(4).dividedBy(5));
        List<Fault> faults = schedule.rounds().get(round);
        for (Fault fault : faults) {
            site.consumers().mend();
            injector.strike(fault);
            progress.note(fault + ": done");
        }
        long left = (end - System.nanoTime()) / 1_000_000;
        Thread.sleep(Math.max(left, length.toMillis() / 5)); // In any case some time in which messages flow.
        progress.say(
                "round %d of %d: %s | confirmed %,d, applied %,d",
                round + 1,
                schedule.rounds().size(),
                Schedule.describe(faults),
                producer.copies().confirmedMessages().size(),
                site.books().applied());
    }

    private void becomeQuiet(Producer producer) throws Exception {
        injector.end();
        progress.say("the faults are over");
        if (!producer.finish(QUIET_LIMIT)) {
            complaints.add("the producer could not publish everything");
        }
        awaitNoBacklog();
        if (!within(QUIET_LIMIT, () -> site.place().consumers() == Consumers.COUNT)) {
            complaints.add("a consumer does not consume any more");
        }
        if (!within(QUIET_LIMIT, () -> site.books().openTransactions() == 0)) {
            complaints.add("a consumer has left a transaction open");
        }
        if (byPosition) {
            compareFences(site.books().fences(), site.place().ends());
        }
        progress.say("every message is published, the queue is empty, and nothing is under way");
        site.consumers().stop();
    }

    /** As long as it gets less: how long a backlog takes is a matter of the machine. */
    private void awaitNoBacklog() throws Exception {
        AtomicLong least = new AtomicLong(Long.MAX_VALUE);
        Callable<Boolean> isLess = () -> {
            long now = site.place().backlog();
            return now < least.getAndAccumulate(now, Math::min);
        };
        while (least.get() > 0) {
            if (!within(QUIET_LIMIT, isLess)) {
                complaints.add("messages that nobody handles: " + least);
                return;
            }
        }
    }

    private void compareFences(Map<Integer, Long> fences, Map<Integer, Long> ends) {
        if (!fences.equals(ends)) {
            complaints.add("the fences %s are not at the ends of the partitions, %s".formatted(fences, ends));
        }
    }

    private static boolean within(Duration limit, Callable<Boolean> holds) throws Exception {
        long end = System.nanoTime() + limit.toNanos();
        while (!answer(holds)) {
            if (System.nanoTime() > end) {
                return false;
            }
            Thread.sleep(POLL.toMillis());
        }
        return true;
    }

    /** The broker may still be on its way up. */
    private static boolean answer(Callable<Boolean> question) throws Exception {
        try {
            return question.call();
        } catch (IOException | TimeoutException e) {
            return false;
        }
    }
}
