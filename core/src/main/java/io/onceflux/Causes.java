package io.onceflux;

import org.jspecify.annotations.Nullable;

/** Looks through a chain of causes: Spring and Reactor wrap what a driver or user code threw. */
final class Causes {

    private static final int DEEPEST = 32;

    private Causes() {}

    /** The first error of a type in the chain, or null. */
    static <E extends Throwable> @Nullable E find(Throwable error, Class<E> type) {
        Throwable at = error;
        for (int depth = 0; at != null && depth < DEEPEST; depth++) {
            if (type.isInstance(at)) {
                return type.cast(at);
            }
            at = at.getCause();
        }
        return null;
    }

    static boolean has(Throwable error, Class<? extends Throwable> type) {
        return find(error, type) != null;
    }

    /** The innermost error of the chain. */
    static Throwable root(Throwable error) {
        Throwable at = error;
        for (int depth = 0; at.getCause() != null && depth < DEEPEST; depth++) {
            at = at.getCause();
        }
        return at;
    }

    /** The message; null if there is none or the exception, which may be a user's, throws instead of telling. */
    static @Nullable String messageOf(Throwable error) {
        try {
            return error.getMessage();
        } catch (Throwable e) {
            return null;
        }
    }

    /** The type and message, for a log. */
    static String describe(Throwable error) {
        String message = messageOf(error);
        return error.getClass().getName() + (message == null ? "" : ": " + message);
    }
}
