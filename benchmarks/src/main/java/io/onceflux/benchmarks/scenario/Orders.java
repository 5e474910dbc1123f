package io.onceflux.benchmarks.scenario;

import java.util.stream.IntStream;

/**
 * The endless row of messages of a variant: the n-th is the same in every run and for every variant, whoever asks for it and
 * in whatever order.
 *
 * <p>Of each 100 messages as many are copies as was asked for, spread among them. A copy is that of one of the last
 * {@value #REACH} orders before its hundred: near enough for a filter of recent keys, and mostly far enough to be committed.
 *
 * <p>Customers come round in a fixed order; if they are all there, two orders whose numbers differ modulo 16 never have the same one.
 */
public final class Orders {

    public static final int CUSTOMERS = 10_000;

    private static final int BLOCK = 100;
    private static final int REACH = 1_000;
    private static final int STEP = 7_919; // Prime: neighbours in time are no neighbours in the table.
    private static final String[] CUSTOMER_IDS =
            IntStream.range(0, CUSTOMERS).mapToObj("customer-%05d"::formatted).toArray(String[]::new);

    private final int freshPerBlock;
    private final int customers;

    public Orders(int duplicatePercent) {
        this(duplicatePercent, CUSTOMERS);
    }

    /** @param customers how many of them have all the orders */
    public Orders(int duplicatePercent, int customers) {
        if (customers < 1 || customers > CUSTOMERS) {
            throw new IllegalArgumentException("1 to " + CUSTOMERS + " customers, not " + customers);
        }
        this.customers = customers;
        if (duplicatePercent < 0 || duplicatePercent >= BLOCK) {
            throw new IllegalArgumentException("a share of duplicates from 0 to 99 %, not " + duplicatePercent);
        }
        this.freshPerBlock = BLOCK - duplicatePercent;
    }

    public static String[] customerIds() {
        return CUSTOMER_IDS.clone();
    }

    /** The message with this index, from 0. */
    public Order message(long index) {
        long number = freshPerBlock == BLOCK ? index : numberOf(index);
        return new Order("A-" + number, CUSTOMER_IDS[(int) (number * STEP % CUSTOMERS % customers)], 1 + number % 100);
    }

    /** How many different orders are among the first so many messages. */
    public long distinct(long messages) {
        int rest = (int) (messages % BLOCK);
        return messages / BLOCK * freshPerBlock
                + IntStream.range(0, rest).filter(this::isFresh).count();
    }

    private long numberOf(long index) {
        long before = index / BLOCK * freshPerBlock;
        int position = (int) (index % BLOCK);
        return isFresh(position)
                ? before + place(position)
                : Math.max(0, before - 1 - Math.floorMod((index * 0x9E3779B97F4A7C15L) >>> 20, (long) REACH));
    }

    private boolean isFresh(int position) {
        return place(position) < freshPerBlock;
    }

    /** A permutation of a block that leaves the first in its place, so that fresh orders and copies alternate. */
    private static int place(int position) {
        return position * 37 % BLOCK;
    }
}
