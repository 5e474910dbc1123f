package io.onceflux.chaos;

import io.onceflux.chaos.consumer.DeadLetterPlace;
import io.onceflux.chaos.consumer.Variant;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * How the consumers of a run are set up.
 *
 * @param maxBatch of each consumer
 */
record ConsumerSetup(Variant variant, DeadLetterPlace deadLetters, List<Integer> maxBatch) {

    private static final int ALONE = 1;
    private static final int TOGETHER = 20;

    /** A partition is handled in a row, and would not keep up otherwise: alone, or where most batches have poison and are split. */
    private static final int FEW = 4;

    /**
     * What was not asked for is chosen by bits of the seed, and not drawn, so that the schedule stays the seed's. What goes by position
     * cannot keep dead letters in a table.
     */
    static ConsumerSetup of(
            long seed, Variant variant, @Nullable DeadLetterPlace deadLetters, @Nullable Integer maxBatch) {
        boolean oddSeed = (seed & 1) != 0;
        boolean evenOnesTogether = (seed >> 1 & 1) != 0;
        return new ConsumerSetup(
                variant,
                deadLetters != null
                        ? deadLetters
                        : oddSeed && !variant.goesByPosition() ? DeadLetterPlace.TABLE : DeadLetterPlace.QUEUE,
                IntStream.rangeClosed(1, Consumers.COUNT)
                        .mapToObj(number -> maxBatch != null
                                ? maxBatch
                                : variant.goesByPosition()
                                        ? FEW
                                        : number % 2 == 0 == evenOnesTogether ? TOGETHER : ALONE)
                        .toList());
    }

    /** For the main class of the consumer with this number, counted from 1. */
    List<String> arguments(int number, String broker, String queue, String database) {
        return List.of(
                variant.name(), broker, queue, database, deadLetters.name(), String.valueOf(maxBatch.get(number - 1)));
    }
}
