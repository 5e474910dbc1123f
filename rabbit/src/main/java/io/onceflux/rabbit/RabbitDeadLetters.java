package io.onceflux.rabbit;

import io.onceflux.DeadLetter;
import io.onceflux.DeadLetters;
import io.onceflux.InvalidSetupException;
import java.time.Duration;
import java.util.function.Function;
import java.util.function.Predicate;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/**
 * The dead letters in a queue of RabbitMQ. Replayed ones go back to the queue that they came from, behind the messages that wait
 * there, with the body, headers and properties that they had; without the headers that said why. A replay publishes with confirms, and
 * only then removes the dead letter.
 *
 * <p>Not given back are the user id, {@code CC}, whose copies went out before, and the expiration: a message that expires in a queue
 * without a dead-letter exchange is gone. They stay in the headers {@code x-onceflux-user-id}, {@code x-onceflux-CC} and
 * {@code x-onceflux-expiration}. Properties that were not UTF-8, such as a binary {@code correlation-id}, are given back as the client
 * decoded them, with U+FFFD for what it could not.
 *
 * <p>Where a message came from is taken from the description that OnceFlux gave it, or from the broker's own {@code x-death} where the
 * broker gave it up; never from what its sender wrote. What neither says goes to the queue of the options: that is so for messages that
 * somebody else put there, and for those whose headers left no room in a frame for the name of a queue.
 *
 * <p>Looking at a queue takes each message and gives it back, to the same place. Two that look at the same time each see a part. For a
 * quorum queue each look is a delivery, and a letter that reaches the delivery limit of its queue is gone: RabbitMQ 4 has a limit of 20 by
 * default, earlier ones have none. {@link QueueDeclaration} declares without a limit; for a queue that was declared otherwise, set the
 * policy {@code delivery-limit} to -1 (from 4.0 on), or have none (before: there, -1 drops a letter at the first look). The limit
 * of a queue cannot be asked for here.
 *
 * <p>Errors: {@link InvalidSetupException} for a refused login; {@link java.io.IOException} if there is no such queue, the broker
 * cannot be reached, a queue to give a message back to is not there, or a letter cannot be read by the client, in whose words it says so:
 * those behind it are not seen until somebody removes it. Listed values are emitted on a thread of their own.
 */
public final class RabbitDeadLetters implements DeadLetters {

    private final RabbitOptions options;
    private final String deadLetterQueue;

    private RabbitDeadLetters(RabbitOptions options, String deadLetterQueue) {
        this.options = options;
        this.deadLetterQueue = deadLetterQueue;
    }

    /**
     * Those of the consumers with these options.
     *
     * @throws InvalidSetupException if they go to an exchange, so that their queue is not known: use {@link #in}
     */
    public static DeadLetters of(RabbitOptions options) {
        if (!options.deadLetterExchange().isEmpty()) {
            throw new InvalidSetupException(
                    "dead letters of queue '%s' go to exchange '%s'; name the queue that has them: RabbitDeadLetters.in(queue, options)"
                            .formatted(options.queue(), options.deadLetterExchange()));
        }
        return in(options.deadLetterRoutingKey(), options);
    }

    /** Those in a queue. What does not say from which queue it came goes back to the queue of the options. */
    public static DeadLetters in(String deadLetterQueue, RabbitOptions options) {
        return new RabbitDeadLetters(options, deadLetterQueue);
    }

    @Override
    public Flux<DeadLetter> list() {
        return onOwnThread(queue -> kept(queue).map(KeptMessage::letter));
    }

    @Override
    public Flux<DeadLetter> replay(Predicate<DeadLetter> which, int perSecond) {
        if (perSecond < 1) {
            throw new InvalidSetupException("perSecond must be at least 1, but is " + perSecond);
        }
        return onOwnThread(queue -> kept(queue)
                .filter(message -> which.test(message.letter()))
                .delayElements(Duration.ofNanos(1_000_000_000L / perSecond))
                .concatMap(
                        message -> Mono.fromCallable(() -> {
                                    queue.giveBack(message);
                                    return message.letter();
                                })
                                .subscribeOn(queue.thread()),
                        1));
    }

    private static Flux<KeptMessage> kept(DeadLetterQueue queue) {
        return Flux.<KeptMessage>generate(sink -> queue.next(sink)).subscribeOn(queue.thread());
    }

    private Flux<DeadLetter> onOwnThread(Function<DeadLetterQueue, Flux<DeadLetter>> work) {
        return Flux.usingWhen(
                Mono.fromSupplier(() -> BrokerThread.start("onceflux-dead-letters-" + deadLetterQueue)),
                thread -> Flux.usingWhen(
                        Mono.fromCallable(() -> DeadLetterQueue.open(options, deadLetterQueue, thread))
                                .subscribeOn(thread),
                        work,
                        queue -> closed(queue, thread)),
                BrokerThread::end);
    }

    private static Mono<Void> closed(DeadLetterQueue queue, Scheduler thread) {
        return BrokerThread.call(thread, queue::close);
    }
}
