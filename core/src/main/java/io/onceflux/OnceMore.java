package io.onceflux;

/** For a dead letter that is replayed: it is given up at once where the set-up is broken, because nobody mends it meanwhile. */
record OnceMore(Judge retries) implements Judge {

    @Override
    public Verdict judge(FailureKind kind, Throwable error, boolean databaseAnswers) {
        Verdict verdict = retries.judge(kind, error, databaseAnswers);
        return verdict.held() && verdict.kind() == FailureKind.BROKEN_SETUP
                ? Verdict.giveUp(FailureKind.BROKEN_SETUP)
                : verdict;
    }
}
