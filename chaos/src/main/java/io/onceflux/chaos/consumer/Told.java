package io.onceflux.chaos.consumer;

import io.onceflux.Delivery;
import io.onceflux.Outcome;
import io.onceflux.chaos.consumer.Variant.Incoming;
import java.time.Duration;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a consumer has told of a delivery, as a line of its log. The line is written before the broker is told, by a write that a
 * SIGKILL does not take back: what left the queue by the consumer's word has a line.
 *
 * @param arrival counts the deliveries of the process; 0 for one whose payload could not be decoded
 * @param outcome the simple name of the {@link Outcome}
 */
public record Told(Copy copy, long arrival, String outcome) {

    /** The end of the line is a part of it, so that a line that was cut short is none. */
    private static final Pattern LINE = Pattern.compile(" (\\S+) copy (\\d+), arrival (\\d+): (\\w+) after \\d+ ms$");

    static String line(Delivery<?> delivery, Outcome outcome, Duration elapsed) {
        return "%s, arrival %d: %s after %d ms"
                .formatted(
                        Copy.of(delivery), arrival(delivery), outcome.getClass().getSimpleName(), elapsed.toMillis());
    }

    private static long arrival(Delivery<?> delivery) {
        try {
            return delivery.payload() instanceof Incoming incoming ? incoming.arrival() : 0;
        } catch (RuntimeException undecodable) {
            return 0;
        }
    }

    /** Empty for a line that says something else. */
    public static Optional<Told> parse(String line) {
        Matcher found = LINE.matcher(line);
        return found.find()
                ? Optional.of(new Told(
                        new Copy(found.group(1), Integer.parseInt(found.group(2))),
                        Long.parseLong(found.group(3)),
                        found.group(4)))
                : Optional.empty();
    }

    /** Whether the effect was told to have been committed by this very delivery. */
    public boolean isApplied() {
        return outcome.equals(Outcome.Applied.class.getSimpleName());
    }

    public boolean isFailed() {
        return outcome.equals(Outcome.Failed.class.getSimpleName());
    }
}
