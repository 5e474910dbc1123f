package io.onceflux.examples.demo;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.services.ForkedJvm;
import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class DemoTest {
    private static final Duration LIMIT = Duration.ofMinutes(4);

    @ParameterizedTest
    @ValueSource(strings = {"", "--embedded-broker", "--kafka"})
    void theBooksOfOnceFluxAreExactAndThoseOfTheNaiveConsumerAreNot(String broker) {
        String[] args = ("--orders 200 " + broker).strip().split(" ");
        try (ForkedJvm demo = ForkedJvm.start(Demo.class, args)) {
            String audit = demo.awaitLine(line -> line.startsWith("audit "), LIMIT);

            assertThat(audit)
                    .matches("audit orders=200 deliveries=280 applied=200 duplicates=80 excess_points=0"
                            + " naive_excess_points=[1-9][0-9]*");
            assertThat(demo.exitCode()).isZero();
            assertThat(demo.lines()).endsWith(audit);
        }
    }
}
