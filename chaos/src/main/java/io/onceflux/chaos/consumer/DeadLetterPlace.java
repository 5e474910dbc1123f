package io.onceflux.chaos.consumer;

/** Where the consumers keep their dead letters. */
public enum DeadLetterPlace {
    QUEUE,
    TABLE
}
