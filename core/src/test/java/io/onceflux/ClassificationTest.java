package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.AttemptConnection.NoConnectionException;
import io.onceflux.AttemptConnection.UnknownCommitException;
import io.onceflux.postgres.MissingPartitions;
import java.time.Duration;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Mono;

class ClassificationTest {

    private final Classification whileDatabaseAnswers = new Classification(error -> null, Mono.just(true));
    private final Classification whileDatabaseIsAway = new Classification(error -> null, Mono.just(false));

    @ParameterizedTest
    @CsvSource({
        "40001, CONFLICT",
        "40P01, CONFLICT",
        "55P03, CONFLICT",
        "0A000, CONFLICT",
        "08000, INFRASTRUCTURE",
        "08003, INFRASTRUCTURE",
        "08006, INFRASTRUCTURE",
        "08P01, INFRASTRUCTURE",
        "57P01, INFRASTRUCTURE",
        "57P02, INFRASTRUCTURE",
        "57P03, INFRASTRUCTURE",
        "57014, INFRASTRUCTURE",
        "53100, INFRASTRUCTURE",
        "53200, INFRASTRUCTURE",
        "53300, INFRASTRUCTURE",
        "58000, INFRASTRUCTURE",
        "58030, INFRASTRUCTURE",
        "28000, INFRASTRUCTURE",
        "28P01, INFRASTRUCTURE",
        "25006, INFRASTRUCTURE",
        "42P01, BROKEN_SETUP",
        "42703, BROKEN_SETUP",
        "42501, BROKEN_SETUP",
        "42704, BROKEN_SETUP",
        "42804, BROKEN_SETUP",
        "42883, BROKEN_SETUP",
        "42P10, BROKEN_SETUP",
        "22001, PERMANENT",
        "22021, PERMANENT",
        "22P02, PERMANENT",
        "23502, PERMANENT",
        "23503, PERMANENT",
        "23505, PERMANENT",
        "23514, PERMANENT",
        "23P01, PERMANENT",
        "42601, PERMANENT",
        "25P02, EFFECT",
        "P0001, EFFECT",
        "99999, EFFECT",
        "XX000, EFFECT",
        "54000, EFFECT",
    })
    void theSqlStateDecidesHoweverDeepItIsWrapped(String state, FailureKind kind) {
        assertThat(kindOf(DatabaseErrors.withState(state))).isEqualTo(kind);
        assertThat(kindOf(DatabaseErrors.wrapped(state))).isEqualTo(kind);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "1", "408888"})
    void aStateThatIsNoneSaysNothing(String state) {
        assertThat(kindOf(DatabaseErrors.withState(state))).isEqualTo(FailureKind.EFFECT);
        assertThat(kindOf(DatabaseErrors.withState(null))).isEqualTo(FailureKind.EFFECT);
    }

    @Test
    void aFullRequestQueueIsTheEffectsFaultThoughItLooksLikeALostConnection() {
        assertThat(kindOf(new DatabaseErrors.RequestQueueException())).isEqualTo(FailureKind.EFFECT);
    }

    @Test
    void aTimeLimitIsInfrastructureOnlyWhileTheProbeFails() {
        Throwable limit = new ProcessOnce.TimeLimitException(Duration.ofSeconds(1));
        assertThat(whileDatabaseAnswers.kindOf(limit).block()).isEqualTo(FailureKind.EFFECT);
        assertThat(whileDatabaseIsAway.kindOf(limit).block()).isEqualTo(FailureKind.INFRASTRUCTURE);
    }

    @Test
    void anUnknownCommitAndAMissingConnectionAreInfrastructure() {
        assertThat(kindOf(new UnknownCommitException(new RuntimeException()))).isEqualTo(FailureKind.INFRASTRUCTURE);
        assertThat(kindOf(new NoConnectionException(DatabaseErrors.withState("42501"))))
                .isEqualTo(FailureKind.INFRASTRUCTURE);
    }

    /** And nobody's word changes that: it is the table's fault, and a message that is no dead letter. */
    @Test
    void aMissingPartitionIsABrokenSetupOnceTheTableWasLookedAt() {
        Classification own = new Classification(error -> FailureKind.PERMANENT, Mono.just(false));
        assertThat(own.kindOf(new ProcessOnce.ClaimFailedException(MissingPartitions.missing()))
                        .block())
                .isEqualTo(FailureKind.BROKEN_SETUP);
        assertThat(own.kindOf(new ProcessOnce.ClaimFailedException(MissingPartitions.unexplained()))
                        .block())
                .isEqualTo(FailureKind.CONFLICT);
    }

    @Test
    void aPermanentFailureIsPermanentWhateverItsCause() {
        assertThat(kindOf(new RuntimeException(new PermanentFailure("no", DatabaseErrors.withState("40001")))))
                .isEqualTo(FailureKind.PERMANENT);
    }

    @Test
    void theUsersWordComesFirst() {
        Classification own = new Classification(error -> FailureKind.CONFLICT, Mono.just(true));
        assertThat(own.kindOf(DatabaseErrors.withState("23505")).block()).isEqualTo(FailureKind.CONFLICT);
    }

    @Test
    void theUserIsAskedAboutTheEffectAloneAndNotAboutWhatOnceFluxDoesBesideIt() {
        Classification own = new Classification(error -> FailureKind.PERMANENT, Mono.just(false));
        assertThat(Stream.of(
                                new UnknownCommitException(new RuntimeException()),
                                new NoConnectionException(new RuntimeException()),
                                new ProcessOnce.ClaimFailedException(DatabaseErrors.withState("08006")),
                                new ProcessOnce.TimeLimitException(Duration.ofSeconds(1)))
                        .map(RuntimeException::new)
                        .map(error -> own.kindOf(error).block()))
                .containsOnly(FailureKind.INFRASTRUCTURE);
    }

    @Test
    void aClassifierThatThrowsHasNoOpinion() {
        Classification throwing = new Classification(
                error -> {
                    throw new StackOverflowError();
                },
                Mono.just(true));
        assertThat(throwing.kindOf(DatabaseErrors.withState("23505")).block()).isEqualTo(FailureKind.PERMANENT);
    }

    @Test
    void anAnswerToCommitIsDefiniteOnlyIfTheServerGaveItAboutTheTransaction() {
        assertThat(new String[] {"23503", "23505", "40001", "99999"}).allMatch(SqlStates::isDefiniteAnswer);
        assertThat(new String[] {"08006", "57P01", "57P02", "57014", "58030", "XX000", null})
                .noneMatch(SqlStates::isDefiniteAnswer);
    }

    private @Nullable FailureKind kindOf(Throwable error) {
        return whileDatabaseAnswers.kindOf(error).block();
    }
}
