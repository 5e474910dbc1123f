package io.onceflux.chaos;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;

/** What the producer sends in each round. The same seed makes the same messages, copies and order. */
final class Messages {

    private static final int CUSTOMERS = 60;
    private static final int SHUFFLED_TOGETHER = 8;

    private final long seed;
    private final int inARound;
    private final boolean repeats;

    /** @param repeats whether a message is published more than once */
    Messages(long seed, int inARound, boolean repeats) {
        this.seed = seed;
        this.inARound = inARound;
        this.repeats = repeats;
    }

    static List<String> customers() {
        return IntStream.range(0, CUSTOMERS).mapToObj(Messages::customer).toList();
    }

    /** The distinct messages of a round, counted from 0. */
    List<Message> distinct(int round) {
        Random random = random(round, 1);
        return IntStream.range(0, inARound)
                .mapToObj(number -> message("r%03d-%04d".formatted(round + 1, number), random))
                .toList();
    }

    /**
     * What goes out in a round, in this order: its messages, one in ten twice in a row, one in ten again later, and some of an
     * earlier round once more; neighbours change places.
     */
    List<Message> publications(int round) {
        Random random = random(round, 2);
        List<Message> out = repeats ? repeated(round, random) : new ArrayList<>(distinct(round));
        for (int from = 0; from < out.size(); from += SHUFFLED_TOGETHER) {
            Collections.shuffle(out.subList(from, Math.min(from + SHUFFLED_TOGETHER, out.size())), random);
        }
        return out;
    }

    private List<Message> repeated(int round, Random random) {
        List<Message> out = new ArrayList<>();
        List<Message> again = new ArrayList<>(replayed(round, random));
        for (Message message : distinct(round)) {
            out.add(message);
            switch (random.nextInt(10)) {
                case 0 -> out.add(message);
                case 1 -> again.add(message);
                default -> {}
            }
        }
        Collections.shuffle(again, random);
        for (Message message : again) {
            int earliest = out.indexOf(message) + 1;
            out.add(earliest + random.nextInt(out.size() + 1 - earliest), message);
        }
        return out;
    }

    private List<Message> replayed(int round, Random random) {
        if (round == 0) {
            return List.of();
        }
        List<Message> earlier = new ArrayList<>(distinct(random.nextInt(round)));
        Collections.shuffle(earlier, random);
        return earlier.subList(0, inARound / 20);
    }

    private static Message message(String id, Random random) {
        int kind = random.nextInt(50);
        long points = 1L + random.nextInt(100);
        String customer = customer(random.nextInt(CUSTOMERS));
        return switch (kind) {
            case 0 -> new Message(id, Message.Kind.UNDECODABLE, customer, points);
            case 1 -> new Message(id, Message.Kind.REFUSED, customer, -points);
            default -> new Message(id, Message.Kind.GOOD, customer, points);
        };
    }

    private Random random(int round, int purpose) {
        return new Random(seed ^ (0x9E3779B97F4A7C15L * (2L * round + purpose)));
    }

    private static String customer(int number) {
        return "C-%03d".formatted(number);
    }
}
