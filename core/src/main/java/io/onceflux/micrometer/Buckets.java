package io.onceflux.micrometer;

import java.time.Duration;
import java.util.stream.LongStream;

/** The buckets of meters: so few that each consumer can have them, and close enough for a 99th percentile. */
final class Buckets {

    static final Duration[] TIMES = LongStream.of(
                    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000)
            .mapToObj(Duration::ofMillis)
            .toArray(Duration[]::new);

    /** Of batches of messages. */
    static final double[] SIZES = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024};

    private Buckets() {}
}
