package io.onceflux;

import java.util.function.Predicate;
import reactor.core.publisher.Flux;

/**
 * The dead letters of one consumer, where they are kept: to look at, and to give back once their cause is mended.
 *
 * <p>{@code replay} goes well with messages that were applied in the meantime: their claim makes them duplicates.
 *
 * <pre>{@code
 * letters.replay(letter -> letter.reason().contains("no customer"), 50).subscribe();
 * }</pre>
 */
public interface DeadLetters {

    /** All of them that are there now, the oldest first; each stays where it is. */
    Flux<DeadLetter> list();

    /**
     * Gives dead letters back to be handled again, the oldest first, and removes each once that is certain. Those that come while
     * it runs are left alone, and so are those that are not chosen.
     *
     * @param which chooses by key, by reason, by kind; {@code letter -> true} for all
     * @param perSecond how many at most are given back in a second, so that they do not crowd out the messages of today
     * @return those that were given back and removed, and no others: what fails again, where that is known, is left out, and what two
     *     replays at once give back is told by one of them. An error ends it, as does an outage or a stop; what it had not removed by
     *     then is still kept. Where giving back and removing are not one transaction (RabbitMQ), a message that it had given back but not removed is
     *     a duplicate at the next replay. Cancelling ends it too.
     */
    Flux<DeadLetter> replay(Predicate<DeadLetter> which, int perSecond);
}
