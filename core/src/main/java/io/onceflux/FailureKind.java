package io.onceflux;

/** What a failure is, and so what is done about it. */
public enum FailureKind {

    /** Two transactions met (serialization failure, deadlock, lock timeout): a new transaction, for a limited time. */
    CONFLICT,

    /** The database or the way to it is away: the message is held and tried again, without a limit on attempts. */
    INFRASTRUCTURE,

    /** A table, column, right or partition of the claim table is missing: the message is held, and an alarm raised, until somebody mends it. */
    BROKEN_SETUP,

    /** This message can never be handled: a dead letter at once. */
    PERMANENT,

    /** Any other error of the effect: a limited number of attempts, then a dead letter. */
    EFFECT
}
