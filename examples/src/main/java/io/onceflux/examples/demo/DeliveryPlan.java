package io.onceflux.examples.demo;

import io.onceflux.examples.loyalty.OrderCompleted;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * The messages that both consumers get, in this order. The same seed makes the same plan.
 *
 * @param pairs orders that come twice at the same moment, so that each of two instances gets a copy
 * @param stream orders that come in one go, some again right behind, some again much later
 * @param replay old messages once more, as after an operator's "send yesterday again"
 */
record DeliveryPlan(List<OrderCompleted> pairs, List<OrderCompleted> stream, List<OrderCompleted> replay) {

    static final int CUSTOMERS = 100;

    static DeliveryPlan of(int orders, long seed) {
        Random random = new Random(seed);
        List<OrderCompleted> all = IntStream.rangeClosed(1, orders)
                .mapToObj(number -> new OrderCompleted(
                        "A-%06d".formatted(number), customer(random.nextInt(CUSTOMERS)), 5L * (1 + random.nextInt(20))))
                .toList();
        int paired = orders / 10;
        List<OrderCompleted> rest = all.subList(paired, orders);
        return new DeliveryPlan(all.subList(0, paired), stream(rest, orders, random), some(all, orders / 5, random));
    }

    static List<String> customers() {
        return IntStream.range(0, CUSTOMERS).mapToObj(DeliveryPlan::customer).toList();
    }

    long orders() {
        return Stream.of(pairs, stream, replay).flatMap(List::stream).distinct().count();
    }

    int deliveries() {
        return 2 * pairs.size() + stream.size() + replay.size();
    }

    private static String customer(int number) {
        return "C-%03d".formatted(number + 1);
    }

    private static List<OrderCompleted> stream(List<OrderCompleted> once, int orders, Random random) {
        List<OrderCompleted> stream = new ArrayList<>(once);
        for (OrderCompleted again : some(once.subList(0, orders / 2), orders / 20, random)) {
            int earliest = stream.indexOf(again) + orders * 3 / 10;
            stream.add(earliest + random.nextInt(stream.size() - earliest), again);
        }
        for (OrderCompleted again : some(once, orders / 20, random)) {
            stream.add(stream.indexOf(again) + 1, again);
        }
        return List.copyOf(stream);
    }

    private static List<OrderCompleted> some(List<OrderCompleted> orders, int count, Random random) {
        List<OrderCompleted> shuffled = new ArrayList<>(orders);
        Collections.shuffle(shuffled, random);
        return List.copyOf(shuffled.subList(0, count));
    }
}
