package io.onceflux.postgres;

/** A claim table, or its server, cannot be used; the message says what to change. */
public final class UnfitTableException extends RuntimeException {

    UnfitTableException(String sentence) {
        super(sentence);
    }
}
