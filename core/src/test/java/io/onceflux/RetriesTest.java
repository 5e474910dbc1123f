package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.AttemptConnection.NoConnectionException;
import io.onceflux.AttemptConnection.UnknownCommitException;
import io.onceflux.Judge.Verdict;
import io.onceflux.Message.UnusableMessageException;
import io.onceflux.postgres.MissingPartitions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class RetriesTest {

    private final Throwable error = new IllegalStateException("failed");

    private final FailurePolicy policy = FailurePolicy.builder()
            .maxAttempts(3)
            .backoff(FailureKind.CONFLICT, doubling(10, 1_000))
            .backoff(FailureKind.EFFECT, doubling(100, 5_000))
            .backoff(FailureKind.INFRASTRUCTURE, doubling(100, 5_000))
            .backoff(FailureKind.BROKEN_SETUP, doubling(1_000, 5_000))
            .conflictTimeout(Duration.ofMinutes(10))
            .quarantineAfter(4)
            .alarmAfter(5)
            .build();
    private final AtomicLong now = new AtomicLong();
    private final AtomicBoolean snapshots = new AtomicBoolean();
    private final RecordingListener listener = new RecordingListener();
    private final Progress progress = new Progress(policy.alarmAfter(), listener);
    private final Retries retries = retriesOf("1");

    private Retries retriesOf(@Nullable String id) {
        return retriesOf(id == null ? null : new MessageKey("c", id), false);
    }

    private Retries retriesOf(@Nullable MessageKey key, boolean callerWaits) {
        return new Retries(key, callerWaits, policy, progress, snapshots::get, now::get);
    }

    @Test
    void anEffectHasItsAttemptsWithDoublingPausesAndIsGivenUp() {
        assertThat(judge(FailureKind.EFFECT, error)).isEqualTo(Verdict.retry(FailureKind.EFFECT, millis(100)));
        assertThat(judge(FailureKind.EFFECT, error)).isEqualTo(Verdict.retry(FailureKind.EFFECT, millis(200)));
        assertThat(judge(FailureKind.EFFECT, error)).isEqualTo(Verdict.giveUp(FailureKind.EFFECT));
    }

    @Test
    void eachKindHasPausesOfItsOwnAndCountsItsOwnFailures() {
        Throwable conflict = DatabaseErrors.withState("40001");
        assertThat(retries.judge(FailureKind.INFRASTRUCTURE, error, false).pause())
                .isEqualTo(millis(100));
        assertThat(retries.judge(FailureKind.INFRASTRUCTURE, error, false).pause())
                .isEqualTo(millis(200));
        assertThat(judge(FailureKind.BROKEN_SETUP, error).pause()).isEqualTo(millis(1_000));
        assertThat(judge(FailureKind.CONFLICT, conflict).pause()).isEqualTo(millis(0));
        assertThat(judge(FailureKind.CONFLICT, conflict).pause()).isEqualTo(millis(10));
        assertThat(judge(FailureKind.EFFECT, error).pause()).isEqualTo(millis(100));
        assertThat(judge(FailureKind.BROKEN_SETUP, error).pause()).isEqualTo(millis(2_000));
        assertThat(retries.judge(FailureKind.INFRASTRUCTURE, error, false).pause())
                .isEqualTo(millis(400));
    }

    @Test
    void aPermanentFailureIsGivenUpAtOnce() {
        assertThat(judge(FailureKind.PERMANENT, error)).isEqualTo(Verdict.giveUp(FailureKind.PERMANENT));
    }

    @Test
    void aConflictIsTriedAtOnceThenWithPausesUntilItsTimeoutAndThenCountsAsAnEffect() {
        Throwable conflict = DatabaseErrors.withState("40001");
        assertThat(judge(FailureKind.CONFLICT, conflict)).isEqualTo(Verdict.retry(FailureKind.CONFLICT, millis(0)));
        for (int i = 0; i < 50; i++) {
            now.addAndGet(11_000);
            assertThat(judge(FailureKind.CONFLICT, conflict).kind()).isEqualTo(FailureKind.CONFLICT);
        }
        now.set(Duration.ofMinutes(10).toMillis());
        assertThat(judge(FailureKind.CONFLICT, conflict).kind()).isEqualTo(FailureKind.EFFECT);
        assertThat(judge(FailureKind.CONFLICT, conflict).kind()).isEqualTo(FailureKind.EFFECT);
        assertThat(judge(FailureKind.CONFLICT, conflict)).isEqualTo(Verdict.giveUp(FailureKind.EFFECT));
    }

    @Test
    void conflictsDoNotUseUpTheAttemptsOfTheEffect() {
        for (int i = 0; i < 20; i++) {
            assertThat(judge(FailureKind.CONFLICT, error).next()).isEqualTo(Verdict.Next.RETRY);
        }
        assertThat(judge(FailureKind.EFFECT, error)).isEqualTo(Verdict.retry(FailureKind.EFFECT, millis(100)));
    }

    @Test
    void aUniqueViolationUnderASnapshotIsAConflictOnce() {
        snapshots.set(true);
        assertThat(judge(FailureKind.PERMANENT, DatabaseErrors.withState("23505"))
                        .kind())
                .isEqualTo(FailureKind.CONFLICT);
        assertThat(judge(FailureKind.PERMANENT, DatabaseErrors.withState("23505")))
                .isEqualTo(Verdict.giveUp(FailureKind.PERMANENT));
        assertThat(retriesOf("2").judge(FailureKind.PERMANENT, DatabaseErrors.withState("22001"), true))
                .isEqualTo(Verdict.giveUp(FailureKind.PERMANENT));
    }

    @Test
    void aUniqueViolationUnderReadCommittedIsPermanent() {
        assertThat(judge(FailureKind.PERMANENT, DatabaseErrors.withState("23505")))
                .isEqualTo(Verdict.giveUp(FailureKind.PERMANENT));
    }

    @Test
    void infrastructureIsHeldWithoutALimitWhileTheDatabaseIsAway() {
        for (int i = 0; i < 1_000; i++) {
            Verdict verdict = retries.judge(FailureKind.INFRASTRUCTURE, error, false);
            assertThat(verdict.held()).isTrue();
            assertThat(verdict.pause()).isBetween(millis(100), Duration.ofSeconds(5));
        }
    }

    @Test
    void aMessageThatAloneFailsAsInfrastructureWhileProbesSucceedIsQuarantined() {
        for (int i = 0; i < 3; i++) {
            assertThat(retries.judge(FailureKind.INFRASTRUCTURE, error, true).held())
                    .isTrue();
        }
        assertThat(retries.judge(FailureKind.INFRASTRUCTURE, error, true))
                .isEqualTo(Verdict.giveUp(FailureKind.INFRASTRUCTURE));
    }

    @Test
    void whoWaitsForAPartitionIsNeverSuspectedWhateverOthersDo() {
        for (int i = 0; i < 1_000; i++) {
            progress.committed();
            progress.applied();
            assertThat(retries.judge(FailureKind.BROKEN_SETUP, MissingPartitions.missing(), true)
                            .held())
                    .isTrue();
        }
    }

    /** Those that have their partition must not wait for it. */
    @Test
    void aBatchIsTakenApartAtOnceWhereAPartitionIsMissing() {
        assertThat(new BatchRetries(policy).judge(FailureKind.BROKEN_SETUP, MissingPartitions.missing(), true))
                .isEqualTo(Verdict.split(FailureKind.BROKEN_SETUP));
    }

    @Test
    void whereOthersAreHeldAsWellNoneIsSuspectedUntilOthersCommit() {
        for (String id : List.of("1", "other")) {
            progress.held(
                    List.of(new Message<>(
                            TestDelivery.order(id), new MessageKey("c", id), null, 0, false, null, null, null)),
                    FailureKind.INFRASTRUCTURE,
                    error);
        }
        for (int i = 0; i < 100; i++) {
            assertThat(retries.judge(FailureKind.INFRASTRUCTURE, error, true).held())
                    .isTrue();
        }
        for (int i = 0; i < 3; i++) {
            progress.committed();
            assertThat(retries.judge(FailureKind.INFRASTRUCTURE, error, true).held())
                    .isTrue();
        }
        progress.committed();
        assertThat(retries.judge(FailureKind.INFRASTRUCTURE, error, true))
                .isEqualTo(Verdict.giveUp(FailureKind.INFRASTRUCTURE));
    }

    @ParameterizedTest
    @ValueSource(strings = {"57P01", "57P02", "57P03"})
    void aServerThatSaysItGoesDownIsBelievedForAWhile(String state) {
        Throwable shutDown = DatabaseErrors.withState(state);
        for (int i = 0; i < 100; i++) {
            assertThat(retries.judge(FailureKind.INFRASTRUCTURE, shutDown, true).held())
                    .isTrue();
        }
        now.addAndGet(Duration.ofMinutes(5).toMillis());
        for (int i = 0; i < 3; i++) {
            assertThat(retries.judge(FailureKind.INFRASTRUCTURE, shutDown, true).held())
                    .isTrue();
        }
        assertThat(retries.judge(FailureKind.INFRASTRUCTURE, shutDown, true))
                .isEqualTo(Verdict.giveUp(FailureKind.INFRASTRUCTURE));
    }

    @Test
    void theTimeForWhichAServerIsBelievedBeginsAnewAfterAnOutageThatLetNobodyIn() {
        Throwable shutDown = DatabaseErrors.withState("57P01");
        assertThat(retries.judge(FailureKind.INFRASTRUCTURE, shutDown, true).held())
                .isTrue();
        now.addAndGet(Duration.ofMinutes(6).toMillis());
        assertThat(retries.judge(FailureKind.INFRASTRUCTURE, new NoConnectionException(error), true)
                        .held())
                .isTrue();
        for (int i = 0; i < 100; i++) {
            assertThat(retries.judge(FailureKind.INFRASTRUCTURE, shutDown, true).held())
                    .isTrue();
        }
    }

    @Test
    void anOutageInBetweenStartsTheCountAgain() {
        for (int round = 0; round < 10; round++) {
            for (int i = 0; i < 3; i++) {
                assertThat(retries.judge(FailureKind.INFRASTRUCTURE, error, true)
                                .held())
                        .isTrue();
            }
            assertThat(retries.judge(FailureKind.INFRASTRUCTURE, error, false).held())
                    .isTrue();
        }
    }

    @Test
    void aBrokenSetupIsHeldWhileNoEffectCommitsAndIsTheMessagesFaultIfOthersDoAgainAndAgain() {
        for (int i = 0; i < 100; i++) {
            assertThat(judge(FailureKind.BROKEN_SETUP, error).held()).isTrue();
        }
        for (int i = 0; i < 3; i++) {
            applied();
            assertThat(judge(FailureKind.BROKEN_SETUP, error).held()).isTrue();
        }
        applied();
        assertThat(judge(FailureKind.BROKEN_SETUP, error)).isEqualTo(Verdict.giveUp(FailureKind.BROKEN_SETUP));
    }

    @Test
    void anEffectThatWasUnderWayWhenTheSetupBrokeDoesNotMakeItTheFaultOfTheOthers() {
        assertThat(judge(FailureKind.BROKEN_SETUP, error).held()).isTrue();
        applied();
        for (int i = 0; i < 100; i++) {
            assertThat(judge(FailureKind.BROKEN_SETUP, error).held()).isTrue();
        }
    }

    @Test
    void duplicatesDoNotMakeABrokenSetupTheMessagesFault() {
        for (int i = 0; i < 100; i++) {
            progress.committed();
            assertThat(judge(FailureKind.BROKEN_SETUP, error).held()).isTrue();
        }
    }

    @Test
    void anUnknownCommitIsQuarantinedIfOthersCommitAgainAndAgain() {
        for (int i = 0; i < 4; i++) {
            assertThat(retries.judge(FailureKind.INFRASTRUCTURE, new UnknownCommitException(error), true)
                            .held())
                    .isTrue();
            progress.committed();
        }
        assertThat(retries.judge(FailureKind.INFRASTRUCTURE, new UnknownCommitException(error), true))
                .isEqualTo(Verdict.giveUp(FailureKind.INFRASTRUCTURE));
    }

    @Test
    void anUnknownCommitIsNotQuarantinedJustBecauseAProbeSucceeds() {
        for (int i = 0; i < 100; i++) {
            assertThat(retries.judge(FailureKind.INFRASTRUCTURE, new UnknownCommitException(error), true)
                            .held())
                    .isTrue();
        }
    }

    @Test
    void aMessageThatGetsNoConnectionIsNeverTheOneAtFault() {
        for (int i = 0; i < 100; i++) {
            assertThat(retries.judge(FailureKind.INFRASTRUCTURE, new NoConnectionException(error), true)
                            .held())
                    .isTrue();
            progress.committed();
        }
    }

    @Test
    void aStatementThatIsNeverSupportedIsNotTakenForAConflictForLong() {
        Throwable unsupported = DatabaseErrors.withState("0A000");
        int judged = 1;
        while (judge(FailureKind.CONFLICT, unsupported).next() != Verdict.Next.GIVE_UP) {
            judged++;
        }
        assertThat(judged).isLessThan(20);
    }

    @Test
    void aMessageWhoseCallerWaitsIsNoSignOfABrokenSetupAndIsNotHeldForOne() {
        for (int i = 0; i < 3 * policy.alarmAfter(); i++) {
            Verdict verdict = retriesOf(new MessageKey("c", "call-" + i), true)
                    .judge(FailureKind.PERMANENT, DatabaseErrors.withState("22012"), true);
            assertThat(verdict).isEqualTo(Verdict.giveUp(FailureKind.PERMANENT));
        }
        assertThat(retriesOf("of-a-flux").judge(FailureKind.PERMANENT, DatabaseErrors.withState("22012"), true))
                .isEqualTo(Verdict.giveUp(FailureKind.PERMANENT));
    }

    @Test
    void manyMessagesWithoutAUsableKeyInARowAreAWarningAndGivenUp() {
        Throwable unusable = new UnusableMessageException(new PermanentFailure("the message has no id"));
        for (int i = 0; i < 3 * policy.alarmAfter(); i++) {
            assertThat(retriesOf((String) null).judge(FailureKind.PERMANENT, unusable, true))
                    .isEqualTo(Verdict.giveUp(FailureKind.PERMANENT));
        }
        assertThat(listener.warnings).singleElement().asString().contains("the message has no id");
    }

    @ParameterizedTest
    @EnumSource(
            value = FailureKind.class,
            names = {"PERMANENT", "EFFECT"})
    void manyDifferentKeysThatFailAlikeAreHeldAsABrokenSetup(FailureKind kind) {
        for (int i = 0; i < policy.alarmAfter(); i++) {
            assertThat(last(retriesOf("key-" + i), kind)).isEqualTo(Verdict.giveUp(kind));
        }
        assertThat(last(retriesOf("one-more"), kind).kind()).isEqualTo(FailureKind.BROKEN_SETUP);
        assertThat(last(retriesOf("one-more"), kind).held()).isTrue();

        progress.applied();
        assertThat(last(retriesOf("after-a-success"), kind)).isEqualTo(Verdict.giveUp(kind));
    }

    @Test
    void keysThatFailInDifferentWaysRaiseNoAlarm() {
        for (int i = 0; i < 2 * policy.alarmAfter(); i++) {
            String state = i % 2 == 0 ? "22001" : "23502";
            Verdict verdict = retriesOf("key-" + i).judge(FailureKind.PERMANENT, DatabaseErrors.withState(state), true);
            assertThat(verdict).isEqualTo(Verdict.giveUp(FailureKind.PERMANENT));
        }
    }

    @Test
    void whatTheUserJudgedPermanentNeverRaisesTheAlarm() {
        for (int i = 0; i < 100; i++) {
            assertThat(retriesOf("key-" + i).judge(FailureKind.PERMANENT, new PermanentFailure("not an order"), true))
                    .isEqualTo(Verdict.giveUp(FailureKind.PERMANENT));
        }
    }

    private void applied() {
        progress.committed();
        progress.applied();
    }

    private Verdict last(Retries of, FailureKind kind) {
        Verdict verdict = of.judge(kind, error, true);
        for (int i = 1; i < policy.maxAttempts() && kind == FailureKind.EFFECT; i++) {
            verdict = of.judge(kind, error, true);
        }
        return verdict;
    }

    private Verdict judge(FailureKind kind, Throwable error) {
        return retries.judge(kind, error, true);
    }

    private static Backoff doubling(long min, long max) {
        return new Backoff(millis(min), millis(max), () -> 0);
    }

    private static Duration millis(long millis) {
        return Duration.ofMillis(millis);
    }

    @Test
    void anOutageDoesNotUseUpTheTimeForConflicts() {
        Throwable conflict = DatabaseErrors.withState("40001");
        assertThat(judge(FailureKind.CONFLICT, conflict).next()).isEqualTo(Verdict.Next.RETRY);
        now.addAndGet(Duration.ofMinutes(15).toMillis());
        assertThat(judge(FailureKind.INFRASTRUCTURE, new NoConnectionException(error))
                        .next())
                .isEqualTo(Verdict.Next.HOLD);
        for (int i = 0; i < 3; i++) {
            now.addAndGet(200);
            assertThat(judge(FailureKind.CONFLICT, conflict).kind()).isEqualTo(FailureKind.CONFLICT);
        }
    }

    @Test
    void anAttemptThatFailsOtherwiseEndsTheRowOfThoseThatFailAlone() {
        Throwable cancelled = DatabaseErrors.withState("57014");
        for (int i = 0; i < 2 * policy.quarantineAfter(); i++) {
            assertThat(judge(FailureKind.INFRASTRUCTURE, cancelled).next()).isEqualTo(Verdict.Next.HOLD);
            assertThat(judge(FailureKind.CONFLICT, DatabaseErrors.withState("40001"))
                            .next())
                    .isEqualTo(Verdict.Next.RETRY);
        }
    }
}
