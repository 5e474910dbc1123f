package io.onceflux.postgres;

/** The key column cannot hold an id byte for byte, such as text in a column of type uuid. */
public final class UnstorableIdException extends RuntimeException {

    UnstorableIdException(String sentence) {
        super(sentence);
    }
}
