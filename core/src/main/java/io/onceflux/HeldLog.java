package io.onceflux;

import java.time.Duration;

/**
 * What of being held is worth a line. A database that is short of connections takes some messages and refuses others, so that holding them begins
 * and ends many times a second: then a line says so now and then. What lasts is said in any case, and so is a broken set-up.
 */
final class HeldLog {

    private final EverySoOften often;
    private boolean held;
    private boolean told;

    HeldLog(Duration between) {
        this.often = new EverySoOften(between);
    }

    /** Whether to say that messages are held from now on. */
    synchronized boolean begins(FailureKind kind) {
        held = true;
        told = kind == FailureKind.BROKEN_SETUP || often.isOpen();
        return told;
    }

    /** An attempt has failed: whether to say now that messages are held, as it was not said when that began. */
    synchronized boolean lasts(FailureKind kind) {
        boolean isNews = held && !told && kind == FailureKind.INFRASTRUCTURE && often.isOpen();
        told |= isNews;
        return isNews;
    }

    /** Whether to say that they are not held any more. */
    synchronized boolean ends() {
        held = false;
        return told;
    }
}
