package io.onceflux.examples.demo;

import io.onceflux.examples.loyalty.OrderCompleted;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Stream;

/** One service gets all deliveries of the plan, loses an instance in the middle, and is audited at the end. */
final class Run {

    private static final Duration LIMIT = Duration.ofMinutes(2);
    /** The broker deals the messages out in turn: instances that are idle get the two copies of an order at the same moment. */
    private static final int WAVE = 10;

    private static final Duration BETWEEN_WAVES = Duration.ofMillis(50);
    private static final Duration POLL = Duration.ofMillis(20);
    /** An empty queue says nothing of the messages that an instance has in hand: it gets this time for them, or more. */
    private static final Duration QUIET = Duration.ofSeconds(1);

    private static final int STOPS = 5;

    private final Contender contender;
    private final DeliveryPlan plan;
    private final Broker broker;
    private final Bookkeeping books;
    private final Progress progress;

    Run(Contender contender, DeliveryPlan plan, Broker broker, Bookkeeping books, Progress progress) {
        this.contender = contender;
        this.plan = plan;
        this.broker = broker;
        this.books = books;
        this.progress = progress;
    }

    Books through(Instances instances) throws Exception {
        progress.step("two instances start");
        instances.start();
        instances.start();
        untilConsuming(instances);

        int early = plan.stream().size() / 10;
        int half = plan.stream().size() / 2;
        progress.step("%,d messages come, a quiet start", early);
        publish(plan.stream().subList(0, early));
        untilCredited(plan.stream().subList(0, early).stream().distinct().count(), instances);

        progress.step(
                "%,d orders come twice at the same moment, a copy to each instance",
                plan.pairs().size());
        publishPairs(instances);

        progress.step("%,d messages come at once, duplicates among them", half - early);
        long before = books.creditedOrders(contender);
        publish(plan.stream().subList(early, half));
        until(
                "an instance is in the middle of its work",
                instances,
                () -> books.creditedOrders(contender) >= before + half / 10);
        instances.killOne();
        progress.step("an instance is killed (SIGKILL) after %,d orders", books.creditedOrders(contender));
        instances.start();
        untilConsuming(instances);
        progress.step(
                "a new instance is up, and %,d more messages come; %,d orders are credited by now",
                plan.stream().size() - half, books.creditedOrders(contender));
        publish(plan.stream().subList(half, plan.stream().size()));
        untilCredited(plan.orders(), instances);

        progress.step("%,d old messages are sent again", plan.replay().size());
        publish(plan.replay());
        stop(instances);
        if (broker.keepsWhatIsDone()) {
            readAgain(instances);
        }
        progress.step("the instances have stopped, and the books are read");
        return books.read(contender, broker.backlog(), broker.deadLetters());
    }

    private void readAgain(Instances instances) throws Exception {
        broker.rewind();
        long before = broker.backlog();
        instances.start();
        untilConsuming(instances);
        progress.step(
                "all %,d messages are read again from the start of the %s; a second instance joins", before, broker);
        instances.start();
        untilConsuming(instances);
        progress.step("and leaves");
        instances.stopOne();
        stop(instances);
    }

    private void publishPairs(Instances instances) throws Exception {
        List<OrderCompleted> pairs = plan.pairs();
        long before = books.creditedOrders(contender);
        for (int from = 0; from < pairs.size(); from += WAVE) {
            publish(pairs.subList(from, Math.min(from + WAVE, pairs.size())).stream()
                    .flatMap(order -> Stream.of(order, order))
                    .toList());
            untilCredited(before + Math.min(from + WAVE, pairs.size()), instances);
            Thread.sleep(BETWEEN_WAVES.toMillis());
        }
    }

    private void publish(List<OrderCompleted> orders) throws Exception {
        broker.publish(orders);
        books.published(contender, orders);
    }

    private void untilConsuming(Instances instances) throws Exception {
        until("every instance consumes", instances, () -> broker.consumers() == instances.count());
    }

    private void untilCredited(long orders, Instances instances) throws Exception {
        until("%,d orders are credited".formatted(orders), instances, () -> books.creditedOrders(contender) >= orders);
    }

    private void untilQuiet(Instances instances, Duration quiet) throws Exception {
        long[] lastBusy = {System.nanoTime()};
        until("the %s stays empty".formatted(broker), instances, () -> {
            if (broker.backlog() > 0) {
                lastBusy[0] = System.nanoTime();
            }
            return System.nanoTime() - lastBusy[0] > quiet.toNanos();
        });
    }

    /** What an instance had not done when it was stopped is in the queue again: one more instance takes it, with more time. */
    private void stop(Instances instances) throws Exception {
        untilQuiet(instances, QUIET);
        instances.stop();
        for (int stops = 1; broker.backlog() > 0 && stops < STOPS; stops++) {
            instances.start();
            untilQuiet(instances, QUIET.multipliedBy(1L << stops));
            instances.stop();
        }
    }

    private void until(String what, Instances instances, Callable<Boolean> holds) throws Exception {
        long start = System.nanoTime();
        long said = start;
        while (!holds.call()) {
            instances.requireAlive();
            long now = System.nanoTime();
            if (now - start > LIMIT.toNanos()) {
                throw new IllegalStateException(
                        "Waited %d s in vain until %s (%s).".formatted(LIMIT.toSeconds(), what, contender.title()));
            }
            if (now - said > Duration.ofSeconds(5).toNanos()) {
                said = now;
                progress.step("... waiting until %s: %,d orders credited", what, books.creditedOrders(contender));
            }
            Thread.sleep(POLL.toMillis());
        }
    }
}
