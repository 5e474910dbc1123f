package io.onceflux;

import static io.onceflux.Require.given;
import static io.onceflux.Require.positive;
import static io.onceflux.Require.that;

import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.MissingPartitionException;
import io.onceflux.postgres.OldClaims;
import io.onceflux.postgres.UnfitTableException;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.springframework.transaction.annotation.Isolation;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Removes claims that are older than any message can come again. Immutable.
 *
 * <pre>{@code
 * Retention retention = Retention.of(ClaimTable.processedMessages(), Duration.ofDays(14));
 * retention.run(pool).blockLast();                                     // once, from a job
 * retention.every(Duration.ofHours(1), pool, error -> ...).subscribe() // or in the service, on as many instances as there are
 * }</pre>
 *
 * <p>A message that comes again after its claim was removed is applied again. So the time is to be longer than the source can deliver a
 * message again; a consumer that is told of both ({@link ConsumerBuilder#retention}, {@link ConsumerBuilder#redeliveryWindow}) refuses to
 * start otherwise.
 *
 * <p>A table with {@linkplain ClaimTable#partitionedBy partitions} gets them ahead, and loses those whose times are all longer ago, whole; both
 * without letting a claim wait (before PostgreSQL 14, for {@value DroppedPartitions#LOCK_MILLIS} ms at most, at each of up to
 * {@value DroppedPartitions#TRIES} tries). It counts from the time of the message there. The role must own the table, and have CREATE in its schema.
 * It is to run at least as often as partitions are needed ahead ({@link io.onceflux.postgres.Buckets#ahead}), and once before the first message.
 * A partition that somebody has dropped between others it does not make again, because claims went with it; it says so, each time.
 *
 * <p>It works through any other table in small transactions, with pauses between, and waits for nobody: it skips rows that are locked, and gives up
 * where the table is. An instance that finds another one at it leaves it to that. It takes transactions only, no session, and so works
 * behind PgBouncer; but two connections, one of them for the lock. The role needs SELECT, UPDATE and DELETE on the table, or on each of its
 * partitions. It needs no index on the time, which would cost something with each claim.
 */
public final class Retention {

    /** How long a transaction, or a statement outside of one, may take. */
    static final Duration TIME_LIMIT = Duration.ofMinutes(1);

    private static final Duration CONTROL_LIMIT = Duration.ofSeconds(10);

    private final ClaimTable table;
    private final Duration kept;
    private final @Nullable String consumer;
    private final int batchSize;
    private final Duration pause;
    private final Duration lockTimeout;
    private final @Nullable RetentionListener listener;

    private Retention(
            ClaimTable table,
            Duration kept,
            @Nullable String consumer,
            int batchSize,
            Duration pause,
            Duration lockTimeout,
            @Nullable RetentionListener listener) {
        this.table = table;
        this.kept = kept;
        this.consumer = consumer;
        that(
                !table.hasBuckets() || consumer == null,
                "claim table %s has partitions, which are dropped whole: leave out forConsumer(\"%s\")"
                        .formatted(table, consumer));
        that(
                table.hasBuckets() || table.hasTime(),
                "claim table %s has no time of its claims, so old ones cannot be found".formatted(table));
        that(
                consumer == null || table.hasConsumer(),
                "claim table %s has no column for the consumer: all its claims are of one".formatted(table));
        this.batchSize = batchSize;
        this.pause = pause;
        this.lockTimeout = lockTimeout;
        this.listener = listener;
    }

    /**
     * Keeps the claims of a table for a time.
     *
     * @param table has partitions, or a column for the time of a claim
     * @param kept by the clock of the server, counted from the transaction that has claimed, or, with partitions, from the time of the message;
     *     from 1 ms to 365 days
     * @throws InvalidSetupException if the table has no time, or the time is out of range
     */
    public static Retention of(ClaimTable table, Duration kept) {
        positive("the time that claims are kept", kept);
        return new Retention(
                given("table", table), kept, null, 50_000, Duration.ofMillis(200), Duration.ofSeconds(2), null);
    }

    /** This one for the claims of one consumer, in a table with several. Default: all. */
    public Retention forConsumer(String name) {
        return new Retention(table, kept, given("consumer", name), batchSize, pause, lockTimeout, listener);
    }

    /** This one with another number of claims that are removed in one transaction, at most. Default 50,000. */
    public Retention batchSize(int claimsAtOnce) {
        positive("batchSize", claimsAtOnce);
        return new Retention(table, kept, consumer, claimsAtOnce, pause, lockTimeout, listener);
    }

    /** This one with another pause after a transaction that has removed claims. Default 200 ms. */
    public Retention pause(Duration between) {
        that(!given("pause", between).isNegative(), "pause must not be negative, but is " + between);
        return new Retention(table, kept, consumer, batchSize, between, lockTimeout, listener);
    }

    /** This one with another limit for waiting for a lock on the table; where it passes, the run fails. Default 2 s. */
    public Retention lockTimeout(Duration timeout) {
        positive("lockTimeout", timeout);
        return new Retention(table, kept, consumer, batchSize, pause, timeout, listener);
    }

    /** This one, telling what it does. Default: nobody is told, but for whoever subscribes to a run. */
    public Retention listener(RetentionListener told) {
        return new Retention(
                table,
                kept,
                consumer,
                batchSize,
                pause,
                lockTimeout,
                given("listener", told).forTable(table.toString()));
    }

    /** Whether it removes the claims of this consumer, as they are kept. */
    boolean isOf(String name, Claims claimsOfIt) {
        return (consumer == null || consumer.equals(name))
                && (!(claimsOfIt instanceof TableClaims inTable) || inTable.mayBeIn(table));
    }

    /** How long claims are kept. */
    public Duration kept() {
        return kept;
    }

    /**
     * How far a run has come.
     *
     * @param removed how many claims the run has removed so far; those of dropped partitions about, as PostgreSQL has counted them last
     * @param done the share of the table, or of the partitions that are to be dropped, from 0 to 1
     */
    public record Progress(long removed, double done) {}

    /**
     * Removes what is old now, and makes partitions. Cancelling it rolls back the transaction that is under way.
     *
     * @return a progress after each transaction or dropped partition, on the driver's thread or that of a pause, the last one with {@code done} 1; nothing where
     *     another instance is at it. Error: {@link InvalidSetupException} if there is no such table,
     *     if it does not fit or may not be written to; {@link MissingPartitionException} after everything else was done, where there is none between
     *     others; {@link java.util.concurrent.TimeoutException} where a transaction takes more than a
     *     minute; or the database's own
     */
    public Flux<Progress> run(ConnectionFactory connections) {
        given("connections", connections);
        Transactions transactions = new Transactions(connections, Isolation.READ_COMMITTED, CONTROL_LIMIT);
        return (table.hasBuckets()
                        ? new DroppedPartitions(transactions, table, kept, lockTimeout).run()
                        : new RemovedBatches(
                                        transactions,
                                        new OldClaims(table, consumer),
                                        kept,
                                        batchSize,
                                        pause,
                                        lockTimeout)
                                .run())
                .onErrorMap(
                        UnfitTableException.class, e -> new InvalidSetupException(String.valueOf(e.getMessage()), e))
                .transform(this::telling)
                .contextWrite(CallersTransaction::without)
                .onErrorStop();
    }

    private Flux<Progress> telling(Flux<Progress> run) {
        return listener == null ? run : new ToldRetention(listener).telling(run);
    }

    /**
     * Runs again and again, at once and then after a time, until it is cancelled.
     *
     * @param onError told why a run has failed; the next one comes after the time all the same
     * @return the progress of each run
     */
    public Flux<Progress> every(Duration time, ConnectionFactory connections, Consumer<? super Throwable> onError) {
        positive("the time between runs", time);
        given("onError", onError);
        return run(connections)
                .onErrorResume(error -> {
                    onError.accept(error);
                    return Flux.empty();
                })
                .repeatWhen(ends -> ends.concatMap(end -> Mono.delay(time)))
                .onErrorStop();
    }

    @Override
    public String toString() {
        return "Retention[" + table + (consumer == null ? "" : " of consumer '" + consumer + "'") + ", kept for " + kept
                + "]";
    }
}
