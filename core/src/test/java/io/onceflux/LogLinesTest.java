package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a sender wrote does not become a line of the log, wherever it is quoted. */
class LogLinesTest {

    private static final String MARK = "12:00:00 ERROR forged";

    @ParameterizedTest
    @ValueSource(strings = {"\n", "\r", "\r\n", "\u0085", "\u2028", "\u2029", "\u000b", "\u001b[2K"})
    void nothingThatIsLoggedBreaksItsLine(String lineBreak) {
        String forged = "x" + lineBreak + MARK;
        Throwable error = new IllegalStateException(forged, new IllegalArgumentException(forged));
        Failure failure = new Failure(
                FailureKind.PERMANENT, new MessageKey("c", forged), forged, forged, 1, Instant.EPOCH, error);
        Delivery<?> delivery = new TestDelivery<>(forged, forged);

        for (Consumer<ConsumerListener> event : List.<Consumer<ConsumerListener>>of(
                to -> to.onOutcome(delivery, new Outcome.Failed("c", failure), Duration.ZERO),
                to -> to.onUnknownCommit(delivery, error),
                to -> to.onHeld(FailureKind.BROKEN_SETUP, error),
                to -> to.onHeld(FailureKind.INFRASTRUCTURE, error),
                to -> to.onSettleFailed(delivery, Settlement.deadLetter("c", failure), error),
                to -> to.onSettleFailed(delivery, Settlement.acknowledge(), error),
                to -> to.onWarning(forged),
                to -> to.onSourceLost(forged, forged, Duration.ZERO))) {
            String logged = logged(forged, List.of(), event);
            assertThat(logged).contains(MARK);
            assertThat(logged.lines()).hasSize(1);
            assertThat(logged.strip()).doesNotContainPattern("[\\p{Cc}\\p{Zl}\\p{Zp}]");
        }
    }

    @Test
    void aListenerThatThrowsIsLoggedWithItsStackTraceButNotWithLinesOfItsMessage() {
        String logged = logged("c", List.of(throwing("x\n" + MARK)), ConsumerListener::onStart);

        assertThat(logged).contains("java.lang.IllegalStateException: x?" + MARK, "at io.onceflux.LogLinesTest");
        assertThat(logged.lines()).noneMatch(line -> line.startsWith(MARK));
    }

    @Test
    void anExceptionThatThrowsInsteadOfDescribingItselfHarmsNothing() {
        AtomicReference<Throwable> told = new AtomicReference<>();
        Throwable unspeakable = new IllegalStateException() {
            @Override
            public String getMessage() {
                throw new StackOverflowError();
            }

            @Override
            public synchronized Throwable getCause() {
                throw new StackOverflowError();
            }
        };
        logged(
                "c",
                List.of(new ConsumerListener() {
                    @Override
                    public void onHeld(FailureKind kind, Throwable error) {
                        told.set(error);
                    }
                }),
                to -> to.onHeld(FailureKind.INFRASTRUCTURE, unspeakable));

        assertThat(told).hasValue(unspeakable);
    }

    private static ConsumerListener throwing(String message) {
        return new ConsumerListener() {
            @Override
            public void onStart() {
                throw new IllegalStateException(message, new IllegalArgumentException(message));
            }
        };
    }

    private static String logged(String consumer, List<ConsumerListener> users, Consumer<ConsumerListener> event) {
        HealthWatch health = new HealthWatch(Duration.ofSeconds(60), Clock.systemUTC());
        GuardedListener listener = new GuardedListener(consumer, health, users);
        PrintStream before = System.err;
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        System.setErr(new PrintStream(written, true, StandardCharsets.UTF_8));
        try {
            event.accept(listener);
        } finally {
            System.setErr(before);
        }
        return written.toString(StandardCharsets.UTF_8);
    }
}
