package io.onceflux;

import java.time.Duration;

/** How messages that are attempted together have failed so far, and what follows from their next failure. One call at a time. */
interface Judge {

    /**
     * Judges a failure.
     *
     * @param databaseAnswers whether a probe that writes succeeded after the failure; asked only for failures that hold
     */
    Verdict judge(FailureKind kind, Throwable error, boolean databaseAnswers);

    /**
     * What a failure leads to.
     *
     * @param next what is done
     * @param kind what kind of failure it is taken for
     * @param pause how long to wait before it is done
     */
    record Verdict(Next next, FailureKind kind, Duration pause) {

        /** What is done after a failure. */
        enum Next {
            /** Try again. */
            RETRY,
            /** Try again: something outside of the messages is to be mended first. */
            HOLD,
            /** Try in smaller parts, so that the message at fault stands alone. */
            SPLIT,
            /** No further attempt. */
            GIVE_UP
        }

        static Verdict giveUp(FailureKind kind) {
            return new Verdict(Next.GIVE_UP, kind, Duration.ZERO);
        }

        static Verdict retry(FailureKind kind, Duration pause) {
            return new Verdict(Next.RETRY, kind, pause);
        }

        static Verdict hold(FailureKind kind, Duration pause) {
            return new Verdict(Next.HOLD, kind, pause);
        }

        static Verdict split(FailureKind kind) {
            return new Verdict(Next.SPLIT, kind, Duration.ZERO);
        }

        boolean held() {
            return next == Next.HOLD;
        }
    }
}
