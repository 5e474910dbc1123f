package io.onceflux.chaos;

import java.util.EnumSet;
import java.util.Locale;
import java.util.Set;

/** What can go wrong. */
enum FaultKind {
    KILL_CONSUMER("SIGKILL of a consumer", "SIGKILL of consumer %1$d"),
    KILL_AT_COMMIT("SIGKILL at a COMMIT", "SIGKILL of consumer %1$d at its COMMIT, after %2$d"),
    KILL_AFTER_COMMIT(
            "SIGKILL at the answer to a COMMIT", "SIGKILL of consumer %1$d at the answer to its COMMIT, after %2$d"),
    KILL_AT_ACK("SIGKILL at an ack", "SIGKILL of consumer %1$d at its ack, after %2$d"),
    TERMINATE_CONSUMER("SIGTERM of a consumer", "SIGTERM of consumer %1$d"),
    STALL_CONSUMER("consumer stalled (SIGSTOP)", "consumer %1$d stalled for %4$d ms"),
    KILL_POSTGRES("SIGKILL of PostgreSQL", "SIGKILL of PostgreSQL, away for %4$d ms"),
    RESTART_POSTGRES("restart of PostgreSQL", "PostgreSQL restarted, away for %4$d ms"),
    STALL_POSTGRES("PostgreSQL stalled (SIGSTOP)", "PostgreSQL stalled for %4$d ms"),
    KILL_BROKER("SIGKILL of the broker", "SIGKILL of the broker, away for %4$d ms"),
    RESTART_BROKER("restart of the broker", "broker restarted, away for %4$d ms"),
    STALL_BROKER("broker stalled (SIGSTOP)", "broker stalled for %4$d ms"),
    CUT_BEFORE_COMMIT("cut before COMMIT", "consumer %1$d cut before COMMIT, %3$d times after %2$d"),
    CUT_AFTER_COMMIT(
            "cut before the answer to COMMIT", "consumer %1$d cut before the answer to COMMIT, %3$d times after %2$d"),
    DELAY_COMMIT("COMMIT delayed", "COMMIT of consumer %1$d delayed by %4$d ms, %3$d times after %2$d"),
    DELAY_COMMIT_ANSWER(
            "answer to COMMIT delayed", "answer to COMMIT of consumer %1$d delayed by %4$d ms, %3$d times after %2$d"),
    CUT_BEFORE_ACK("cut before the ack", "consumer %1$d cut before the ack, %3$d times after %2$d"),
    DELAY_ACK("ack delayed", "ack of consumer %1$d delayed by %4$d ms, %3$d times after %2$d");

    /** What needs a proxy before the broker. */
    static final Set<FaultKind> AT_ACKS = Set.copyOf(EnumSet.of(KILL_AT_ACK, CUT_BEFORE_ACK, DELAY_ACK));

    private final String title;
    private final String words;

    FaultKind(String title, String words) {
        this.title = title;
        this.words = words;
    }

    /** For the table at the end. */
    String title() {
        return title;
    }

    String describe(Fault fault) {
        return String.format(Locale.ROOT, words, fault.consumer(), fault.passing(), fault.times(), fault.millis());
    }
}
