package io.onceflux.testkit;

import io.onceflux.Delivery;
import io.onceflux.Failure;
import io.r2dbc.spi.ConnectionFactory;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;

/**
 * A broker at its worst, in the memory of a test: it delivers every message at least once, some several times, not in order, and lets
 * things break between the steps of a message. What it does is decided by a seed, as far as the consumer takes its deliveries in the same order.
 *
 * <pre>{@code
 * DuplicatingSource<Order> source = DuplicatingSource.of(orders).seed(7).copies(3).reordering(20).breaking(0.1);
 * IdempotentConsumer<Order> consumer = loyalty(source.crashing(pool));
 * source.deliveries().transform(consumer).blockLast();
 * }</pre>
 *
 * <p>The flux completes when every message has been acknowledged or given up in each of its copies. Nothing of it blocks.
 *
 * @param <T> the payload
 */
public final class DuplicatingSource<T> {

    private final List<T> messages;
    private final Function<? super T, @Nullable String> idOf;
    private long seed = 1;
    private int mostCopies = 3;
    private int window = 10;
    private double share;
    private Set<Step> steps = EnumSet.allOf(Step.class);
    private final Crashes crashes = new Crashes();
    private @Nullable Backlog<T> backlog;

    private DuplicatingSource(Collection<? extends T> messages, Function<? super T, @Nullable String> idOf) {
        this.messages = List.copyOf(messages);
        this.idOf = idOf;
    }

    /** Of messages whose id is in the payload ({@link io.onceflux.ConsumerBuilder#identifiedBy}). */
    public static <T> DuplicatingSource<T> of(Collection<? extends T> messages) {
        return new DuplicatingSource<>(messages, message -> null);
    }

    /** Of messages with an id beside the payload ({@link Delivery#id}). */
    public static <T> DuplicatingSource<T> of(Collection<? extends T> messages, Function<? super T, String> idOf) {
        return new DuplicatingSource<>(messages, Objects.requireNonNull(idOf, "idOf"));
    }

    /** What decides about copies, order and breaks. Default 1. */
    public DuplicatingSource<T> seed(long number) {
        this.seed = number;
        return this;
    }

    /** How often a message is sent at most; at least once. Default 3. */
    public DuplicatingSource<T> copies(int most) {
        require(most >= 1, "copies must be at least 1, but is " + most);
        this.mostCopies = most;
        return this;
    }

    /** Among how many messages the order is mixed; 1 keeps it. Default 10. */
    public DuplicatingSource<T> reordering(int messagesAtOnce) {
        require(messagesAtOnce >= 1, "reordering must be at least 1, but is " + messagesAtOnce);
        this.window = messagesAtOnce;
        return this;
    }

    /**
     * How often something breaks, at each step of each delivery.
     *
     * @param shareOfDeliveries from 0 to less than 1; default 0
     * @param at the steps; without any, all of them
     */
    public DuplicatingSource<T> breaking(double shareOfDeliveries, Step... at) {
        require(
                shareOfDeliveries >= 0 && shareOfDeliveries < 1,
                "the share of what breaks must be from 0 to less than 1, but is " + shareOfDeliveries);
        this.share = shareOfDeliveries;
        this.steps = at.length == 0 ? EnumSet.allOf(Step.class) : EnumSet.of(at[0], at);
        return this;
    }

    private static void require(boolean holds, String sentence) {
        if (!holds) {
            throw new IllegalArgumentException(sentence);
        }
    }

    /**
     * Connections that break at {@link Step#BEFORE_COMMIT} and {@link Step#AFTER_COMMIT}, for the consumer. They break only while deliveries are
     * handled.
     *
     * @param connections to break
     */
    public ConnectionFactory crashing(ConnectionFactory connections) {
        return new CrashingConnections(connections, crashes);
    }

    /** The deliveries; for one subscriber. */
    public Flux<Delivery<T>> deliveries() {
        return Flux.defer(() -> {
            Random random = new Random(seed);
            crashes.begin(new Random(random.nextLong()), share, steps);
            Backlog<T> begun = new Backlog<>(mixed(random), crashes);
            backlog = begun;
            return begun.deliveries().doFinally(end -> crashes.end());
        });
    }

    private List<Sent<T>> mixed(Random random) {
        List<Sent<T>> all = new ArrayList<>();
        for (T message : messages) {
            String id = idOf.apply(message);
            int copies = 1 + random.nextInt(mostCopies);
            for (int copy = 0; copy < copies; copy++) {
                all.add(new Sent<>(id, message));
            }
        }
        List<Sent<T>> mixed = new ArrayList<>(all.size());
        List<Sent<T>> waiting = new ArrayList<>();
        for (Sent<T> next : all) {
            waiting.add(next);
            if (waiting.size() >= window) {
                mixed.add(waiting.remove(random.nextInt(waiting.size())));
            }
        }
        while (!waiting.isEmpty()) {
            mixed.add(waiting.remove(window == 1 ? 0 : random.nextInt(waiting.size())));
        }
        return mixed;
    }

    /** A copy of a message. */
    record Sent<T>(@Nullable String id, T payload) {}

    /** How many deliveries there were: of copies, and again of what broke. */
    public long delivered() {
        Backlog<T> begun = backlog;
        return begun == null ? 0 : begun.delivered();
    }

    /** How many things broke. */
    public long broken() {
        return crashes.count();
    }

    /** What was given up. */
    public List<Failure> deadLetters() {
        Backlog<T> begun = backlog;
        return begun == null ? List.of() : begun.deadLetters();
    }
}
