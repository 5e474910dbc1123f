package io.onceflux;

/**
 * Turns one form of a payload into another, such as bytes into an object.
 *
 * @param <A> what it reads
 * @param <B> what it makes
 */
@FunctionalInterface
public interface Decoder<A, B> {

    /**
     * Decodes one payload, on the thread that emitted the delivery. It must not block.
     *
     * @throws Exception if the payload cannot be decoded; the message then goes to the dead letters and the stream goes on
     */
    B decode(A payload) throws Exception;
}
