package io.onceflux;

import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** What others wrote, such as a message's sender, as it may stand in a log: it must not look like lines of the log's own. */
final class Printable {

    /** Control characters, among them NEL, and the separators of lines and paragraphs. */
    private static final Pattern BREAKS = Pattern.compile("[\\p{Cc}\\p{Zl}\\p{Zp}]");

    private static final int DEEPEST = 8;

    private Printable() {}

    static String text(String text) {
        return BREAKS.matcher(text).replaceAll("?");
    }

    /** The type and message of an error. */
    static String error(Throwable error) {
        return text(Causes.describe(error));
    }

    /** An error to log with its stack trace and those of its causes. */
    static Throwable withTrace(Throwable error) {
        return copy(error, 0);
    }

    private static Throwable copy(Throwable error, int depth) {
        Throwable cause = error.getCause();
        return new Copy(error, cause == null || depth == DEEPEST ? null : copy(cause, depth + 1));
    }

    private static final class Copy extends Exception {

        Copy(Throwable of, @Nullable Throwable cause) {
            super(error(of), cause);
            setStackTrace(of.getStackTrace());
        }
    }
}
