package io.onceflux;

import io.onceflux.AttemptConnection.NoConnectionException;
import io.onceflux.AttemptConnection.UnknownCommitException;
import io.onceflux.EffectRunner.AgainException;
import io.onceflux.EffectRunner.WroteInVainException;
import io.onceflux.Message.UnusableMessageException;
import io.onceflux.ProcessOnce.ClaimFailedException;
import io.onceflux.ProcessOnce.ClaimHeldException;
import io.onceflux.ProcessOnce.TimeLimitException;
import io.onceflux.postgres.MissingPartitionException;
import io.r2dbc.spi.R2dbcException;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;

/** Says what kind of failure an error is: by the user's word, by its type, by its SQLSTATE; never by its text. */
final class Classification {

    private static final Logger log = LoggerFactory.getLogger(Classification.class);

    private static final List<Class<? extends Throwable>> OF_ONCEFLUX = List.of(
            UnknownCommitException.class,
            NoConnectionException.class,
            ClaimFailedException.class,
            ClaimHeldException.class,
            MissingPartitionException.class,
            TimeLimitException.class,
            AgainException.class,
            WroteInVainException.class);

    private final Function<Throwable, @Nullable FailureKind> usersWord;
    private final Mono<Boolean> databaseAnswers;

    Classification(Function<Throwable, @Nullable FailureKind> usersWord, Mono<Boolean> databaseAnswers) {
        this.usersWord = usersWord;
        this.databaseAnswers = databaseAnswers;
    }

    /**
     * The kind. A time limit is the effect's fault if the database answers a probe, and infrastructure if not; where it passed before
     * the claim was answered, others hold it. A claim that is
     * refused is tried again if a probe, which is a claim too, is not; otherwise it says nothing about the message.
     */
    Mono<FailureKind> kindOf(Throwable error) {
        if (Causes.has(error, UnusableMessageException.class)) {
            return Mono.just(FailureKind.PERMANENT);
        }
        FailureKind users = isOfTheEffect(error) ? askUser(error) : null;
        if (users != null) {
            return Mono.just(users);
        }
        if (Causes.has(error, TimeLimitException.class) && !NothingRan.isSaidBy(error)) {
            FailureKind whereItAnswers =
                    Causes.has(error, ClaimFailedException.class) ? FailureKind.CONFLICT : FailureKind.EFFECT;
            return databaseAnswers.map(answers -> answers ? whereItAnswers : FailureKind.INFRASTRUCTURE);
        }
        FailureKind kind = byTypeOrState(error);
        boolean mayBeTheTable = Causes.has(error, ClaimFailedException.class)
                && (kind == FailureKind.PERMANENT || kind == FailureKind.EFFECT)
                && !Causes.has(error, PermanentFailure.class)
                && !Probe.isTooLong(error);
        return mayBeTheTable
                ? databaseAnswers.map(answers -> answers ? FailureKind.EFFECT : FailureKind.BROKEN_SETUP)
                : Mono.just(kind);
    }

    /** Whether the user can have a word on it: what OnceFlux itself does beside the effect is not theirs to judge. */
    private static boolean isOfTheEffect(Throwable error) {
        return OF_ONCEFLUX.stream().noneMatch(own -> Causes.has(error, own));
    }

    static FailureKind byTypeOrState(Throwable error) {
        MissingPartitionException missing = Causes.find(error, MissingPartitionException.class);
        if (missing != null) {
            return missing.isUnexplained() ? FailureKind.CONFLICT : FailureKind.BROKEN_SETUP;
        }
        if (Causes.has(error, UnknownCommitException.class) || NothingRan.isSaidBy(error)) {
            return FailureKind.INFRASTRUCTURE;
        }
        if (Causes.has(error, AgainException.class)) {
            return FailureKind.CONFLICT;
        }
        if (Causes.has(error, PermanentFailure.class)) {
            return FailureKind.PERMANENT;
        }
        R2dbcException fromDatabase = Causes.find(error, R2dbcException.class);
        FailureKind byState = fromDatabase == null ? null : SqlStates.kindOf(fromDatabase);
        return byState != null ? byState : FailureKind.EFFECT;
    }

    private @Nullable FailureKind askUser(Throwable error) {
        try {
            return usersWord.apply(error);
        } catch (Throwable e) { // An Error too: Reactor rethrows some of them, and the lane would hang.
            log.warn("the failure policy's classifier threw; the SQLSTATE decides instead", e);
            return null;
        }
    }
}
