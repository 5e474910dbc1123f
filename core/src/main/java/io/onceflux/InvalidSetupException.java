package io.onceflux;

/**
 * Settings, the database or the broker are not as the consumer needs them; the message says what to change.
 *
 * <p>It is thrown while a consumer is built, or ends its {@code Flux} before the first message is taken.
 */
public class InvalidSetupException extends RuntimeException {

    /** With a sentence that names the property or table and says what to change. */
    public InvalidSetupException(String sentence) {
        super(sentence);
    }

    /** With a sentence and the error behind it. */
    public InvalidSetupException(String sentence, Throwable cause) {
        super(sentence, cause);
    }
}
