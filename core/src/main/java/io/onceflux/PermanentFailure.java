package io.onceflux;

/**
 * Thrown, or signalled as an error, by user code to say that this message can never be handled: no attempt more is made
 * and it goes to the dead letters at once.
 *
 * <p>It says something about one message. It therefore does not count as one of the "many keys failing in the same way"
 * that pause a consumer (see {@link FailurePolicy}).
 */
public class PermanentFailure extends RuntimeException {

    /**
     * A failure with a reason.
     *
     * @param reason why the message can never be handled; it becomes the reason of the dead letter
     */
    public PermanentFailure(String reason) {
        super(reason);
    }

    /**
     * A failure with a reason and the error behind it.
     *
     * @param reason why the message can never be handled; it becomes the reason of the dead letter
     * @param cause the error behind it
     */
    public PermanentFailure(String reason, Throwable cause) {
        super(reason, cause);
    }
}
