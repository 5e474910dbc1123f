package io.onceflux.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.Claims;
import io.onceflux.Claims.Claim;
import io.onceflux.Claims.Claimed;
import io.onceflux.MessageKey;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.R2dbcException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.assertj.core.api.Assumptions;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/**
 * What every place for claims keeps to. A test of one extends this and says how to get at it; each test has keys of its own.
 *
 * <p>Needs JUnit 5 on the class path.
 */
public abstract class ClaimsContract {

    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final Duration LOCK_TIMEOUT = Duration.ofSeconds(20);

    /** The claims under test; the same ones in each call of a test. */
    protected abstract Claims claims();

    /** Connections to where they are kept. */
    protected abstract ConnectionFactory connections();

    private final List<Connection> open = new ArrayList<>();
    private final String consumer = "contract " + System.nanoTime();

    /** The claims are looked at, as a consumer does. */
    @BeforeEach
    protected void verifyClaims() {
        assertThat(verify()).isNotNull();
    }

    private List<String> verify() {
        Connection connection = connection();
        return Objects.requireNonNull(claims().verify(connection, consumer).block(LIMIT));
    }

    /** What a test has left open is rolled back. */
    @AfterEach
    protected void closeConnections() {
        open.forEach(connection -> Mono.from(connection.close()).block(LIMIT));
        open.clear();
    }

    private Connection connection() {
        Connection connection =
                Objects.requireNonNull(Mono.from(connections().create()).block(LIMIT));
        open.add(connection);
        return connection;
    }

    private Connection begin() {
        Connection connection = connection();
        Mono.from(connection.beginTransaction()).block(LIMIT);
        return connection;
    }

    private static void commit(Connection connection) {
        Mono.from(connection.commitTransaction()).block(LIMIT);
    }

    private static void rollBack(Connection connection) {
        Mono.from(connection.rollbackTransaction()).block(LIMIT);
    }

    private MessageKey key(String id) {
        return new MessageKey(consumer, id);
    }

    private CompletableFuture<Claimed> claiming(Connection connection, String... ids) {
        return claims().claim(
                        connection, Stream.of(ids).map(id -> new Claim(key(id))).toList(), LOCK_TIMEOUT)
                .toFuture();
    }

    private Set<MessageKey> fresh(Connection connection, String... ids) {
        return claiming(connection, ids).orTimeout(30, TimeUnit.SECONDS).join().fresh();
    }

    @Test
    void whatIsCommittedIsADuplicateForEver() {
        Connection first = begin();
        assertThat(fresh(first, "a")).containsExactly(key("a"));
        commit(first);
        Connection second = begin();
        assertThat(fresh(second, "a")).isEmpty();
        commit(second);
        assertThat(fresh(begin(), "a")).isEmpty();
    }

    @Test
    void whatTheSameTransactionHasClaimedIsADuplicateInIt() {
        Connection first = begin();
        assertThat(fresh(first, "a")).isNotEmpty();
        assertThat(fresh(first, "b", "a")).containsExactly(key("b"));
    }

    @Test
    void whatIsRolledBackIsFreshAgain() {
        Connection first = begin();
        assertThat(fresh(first, "a")).isNotEmpty();
        rollBack(first);
        assertThat(fresh(begin(), "a")).containsExactly(key("a"));
    }

    @Test
    void whatIsUnderWayElsewhereIsWaitedForAndADuplicateOnceItIsCommitted() {
        Connection first = begin();
        assertThat(fresh(first, "a")).isNotEmpty();
        CompletableFuture<Claimed> second = claiming(begin(), "a");
        assertThat(second).isNotDone();
        commit(first);
        assertThat(second)
                .succeedsWithin(LIMIT)
                .satisfies(claimed -> assertThat(claimed.fresh()).isEmpty());
    }

    @Test
    void whatIsUnderWayElsewhereAndRolledBackIsFreshForWhoHasWaited() {
        Connection first = begin();
        assertThat(fresh(first, "a")).isNotEmpty();
        CompletableFuture<Claimed> second = claiming(begin(), "a");
        rollBack(first);
        assertThat(second)
                .succeedsWithin(LIMIT)
                .satisfies(claimed -> assertThat(claimed.fresh()).containsExactly(key("a")));
    }

    @Test
    void waitingEndsWithTheLockTimeout() {
        Connection first = begin();
        assertThat(fresh(first, "a")).isNotEmpty();
        assertThatThrownBy(() -> claims().claim(begin(), List.of(new Claim(key("a"))), Duration.ofMillis(100))
                        .then()
                        .block(LIMIT))
                .isInstanceOfSatisfying(
                        R2dbcException.class,
                        error -> assertThat(error.getSqlState()).isEqualTo("55P03"));
    }

    @Test
    void severalAreToldApart() {
        Connection first = begin();
        assertThat(fresh(first, "b", "d")).hasSize(2);
        commit(first);
        Connection second = begin();
        assertThat(fresh(second, "d", "a", "b", "c")).containsExactlyInAnyOrder(key("a"), key("c"));
        rollBack(second);
        assertThat(fresh(begin(), "c", "b", "a")).containsExactlyInAnyOrder(key("a"), key("c"));
    }

    @Test
    void twoWhoWantTheSameInOppositeOrderBothGetAnAnswer() {
        Connection first = begin();
        Connection second = begin();
        CompletableFuture<Claimed> one = claiming(first, "a", "b");
        CompletableFuture<Claimed> other = claiming(second, "b", "a");
        CompletableFuture<Void> committed = CompletableFuture.allOf(
                one.thenAcceptAsync(claimed -> commit(first)), other.thenAcceptAsync(claimed -> commit(second)));
        assertThat(committed).succeedsWithin(LIMIT);
        assertThat(one.join().fresh().size() + other.join().fresh().size()).isEqualTo(2);
    }

    @Test
    void keysAreComparedByteForByteAndConsumersKeptApart() {
        Connection connection = begin();
        assertThat(fresh(connection, "a", "A", "a ", "\u00e4", "a\u0308")).hasSize(5);
        commit(connection);
        Connection other = begin();
        MessageKey ofOther = new MessageKey(consumer + " two", "a");
        Claimed claimed = Objects.requireNonNull(
                claims().claim(other, List.of(new Claim(ofOther)), LOCK_TIMEOUT).block(LIMIT));
        assertThat(claimed.fresh()).containsExactly(ofOther);
    }

    @Test
    void aTrialLeavesNothing() {
        Connection trial = begin();
        assertThat(claims().tryOut(trial, key("nobodys"), LOCK_TIMEOUT).block(LIMIT))
                .isTrue();
        rollBack(trial);
        assertThat(fresh(begin(), "nobodys")).isNotEmpty();
    }

    @Test
    void anotherFingerprintIsAConflictAndAnUnknownOneEqualsAny() {
        Assumptions.assumeThat(claims().keepFingerprints()).isTrue();
        Connection first = begin();
        assertThat(withFingerprint(first, 1L).fresh()).isNotEmpty();
        commit(first);
        assertThat(withFingerprint(begin(), 2L).conflicting()).containsExactly(key("a"));
        assertThat(withFingerprint(begin(), 1L).conflicting()).isEmpty();
        assertThat(withFingerprint(begin(), null).conflicting()).isEmpty();
    }

    private Claimed withFingerprint(Connection connection, @Nullable Long fingerprint) {
        return Objects.requireNonNull(
                claims().claim(connection, List.of(new Claim(key("a"), fingerprint, null)), LOCK_TIMEOUT)
                        .block(LIMIT));
    }
}
