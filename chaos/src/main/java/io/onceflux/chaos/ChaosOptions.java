package io.onceflux.chaos;

import io.onceflux.chaos.consumer.DeadLetterPlace;
import io.onceflux.chaos.consumer.Variant;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** What {@code dev/chaos} was asked for. */
final class ChaosOptions {

    private static final int MOST = 100_000;

    @Option(
            names = "--minutes",
            paramLabel = "N",
            converter = Count.class,
            description = "About how long faults strike. Default: ${DEFAULT-VALUE}.")
    private int minutes = 1;

    @Option(
            names = "--rounds",
            paramLabel = "R",
            converter = Count.class,
            description = "So many rounds, instead of minutes; 10 s each, with --faults crashes 4 s.")
    private @Nullable Integer rounds;

    @Option(
            names = "--seed",
            paramLabel = "S",
            description =
                    "The same seed and length repeat the same schedule and the same messages. Default: the time in seconds.")
    private long seed = System.currentTimeMillis() / 1_000;

    @Option(names = "--schedule", description = "Only print the schedule.")
    private boolean scheduleOnly;

    @Option(
            names = "--faults",
            paramLabel = "all|crashes",
            description = "All (default), or only crashes of consumers and cuts, in short rounds.")
    private Mix mix = Mix.ALL;

    @Option(
            names = "--queue",
            paramLabel = "classic|quorum|kafka",
            description =
                    "Classic (default), or quorum with a delivery limit of 20, where no message may reach it; or a topic of"
                            + " Kafka, without faults at the acknowledgement.")
    private QueueType queue = QueueType.CLASSIC;

    @Option(
            names = "--dead-letters",
            paramLabel = "queue|table",
            description =
                    "Where the consumers keep them. Default: an even seed chooses the queue, an odd one the table.")
    private @Nullable DeadLetterPlace deadLetters;

    @Option(
            names = "--max-batch",
            paramLabel = "N",
            converter = Count.class,
            description =
                    "Group commit of every consumer. Default: 1 for some, 20 for the others; the seed chooses which. 4 for all with"
                            + " an offset fence.")
    private @Nullable Integer maxBatch;

    @Option(
            names = "--consumer",
            paramLabel = "NAME",
            description = {
                "onceflux (default); offset-fence, which needs --queue kafka, and whose producer sends everything once;",
                "or one that is broken on purpose, to see that it is caught:",
                "acks-before-commit, claims-alone, check-then-act."
            })
    private Variant consumer = Variant.ONCEFLUX;

    @Option(
            names = "--logs",
            paramLabel = "FOLDER",
            description = "Where a run's logs go, with the outcome of every copy. Default: chaos/target/runs.")
    private Path logs = Path.of("target", "runs");

    /** What does not go together. */
    Optional<String> contradiction() {
        if (!consumer.goesByPosition()) {
            return Optional.empty();
        }
        if (queue != QueueType.KAFKA) {
            return Optional.of("--consumer %s needs --queue kafka".formatted(name(consumer)));
        }
        return deadLetters == DeadLetterPlace.TABLE
                ? Optional.of("--consumer %s cannot have --dead-letters table".formatted(name(consumer)))
                : Optional.empty();
    }

    long seed() {
        return seed;
    }

    Schedule schedule() {
        return Schedule.of(
                seed,
                rounds != null ? rounds : Math.max(1, minutes * 60 / mix.roundSeconds()),
                mix,
                queue == QueueType.KAFKA ? FaultKind.AT_ACKS : Set.of());
    }

    boolean scheduleOnly() {
        return scheduleOnly;
    }

    QueueType queue() {
        return queue;
    }

    ConsumerSetup consumers() {
        return ConsumerSetup.of(seed, consumer, deadLetters, maxBatch);
    }

    Path logs() {
        return logs;
    }

    /** Names as one writes them in a command line: of the constant {@code CHECK_THEN_ACT}, {@code check-then-act}. */
    static CommandLine withNames(CommandLine line) {
        return line.registerConverter(Mix.class, names(Mix.values()))
                .registerConverter(QueueType.class, names(QueueType.values()))
                .registerConverter(DeadLetterPlace.class, names(DeadLetterPlace.values()))
                .registerConverter(Variant.class, names(Variant.values()));
    }

    private static <E extends Enum<E>> ITypeConverter<E> names(E[] constants) {
        return value -> Stream.of(constants)
                .filter(constant -> name(constant).equals(value))
                .findFirst()
                .orElseThrow(() -> new TypeConversionException("'%s' is none of %s"
                        .formatted(
                                value,
                                Stream.of(constants).map(ChaosOptions::name).toList())));
    }

    /** As it is written on the command line. */
    static String name(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** A whole number from 1 on. */
    private static final class Count implements ITypeConverter<Integer> {
        @Override
        public Integer convert(String value) {
            if (!value.matches("\\d{1,6}") || Integer.parseInt(value) < 1 || Integer.parseInt(value) > MOST) {
                throw new TypeConversionException(
                        "it must be a whole number from 1 to %d, but is '%s'".formatted(MOST, value));
            }
            return Integer.valueOf(value);
        }
    }
}
