package io.onceflux.services;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ForkedJvmTest {
    private static final Duration LIMIT = Duration.ofSeconds(20);

    @Test
    void aKilledJvmRunsNoShutdownHook() {
        try (ForkedJvm jvm = ForkedJvm.start(Waiter.class)) {
            jvm.awaitLine("waiting"::equals, LIMIT);

            jvm.kill();

            assertThat(jvm.isAlive()).isFalse();
            assertThat(jvm.exitCode()).isEqualTo(137);
            assertThat(jvm.lines()).doesNotContain("hook");
        }
    }

    @Test
    void aTerminatedJvmRunsItsShutdownHooks() {
        try (ForkedJvm jvm = ForkedJvm.start(Waiter.class)) {
            jvm.awaitLine("waiting"::equals, LIMIT);

            jvm.terminate();

            assertThat(jvm.exitCode()).isEqualTo(143);
            assertThat(jvm.awaitLine("hook"::equals, LIMIT)).isEqualTo("hook");
        }
    }

    @Test
    void itGetsItsPropertiesArgumentsAndClassPath() {
        try (ForkedJvm jvm = ForkedJvm.start(Waiter.class, Map.of("greeting", "good day"), "a b", "c")) {
            jvm.awaitLine("waiting"::equals, LIMIT);

            assertThat(jvm.lines()).contains("good day [a b, c]");
        }
    }

    @Test
    void aFrozenJvmSaysNothingUntilItThaws() {
        try (ForkedJvm jvm = ForkedJvm.start(Waiter.class)) {
            jvm.awaitLine("waiting"::equals, LIMIT);

            jvm.freeze();
            jvm.terminate();
            assertThatIllegalStateException()
                    .isThrownBy(() -> jvm.awaitLine("hook"::equals, Duration.ofMillis(300)))
                    .withMessageContaining("it still runs");
            jvm.thaw();

            jvm.awaitLine("hook"::equals, LIMIT);
        }
    }

    @Test
    void waitingForALineThatCannotComeAnyMoreFailsAtOnceAndShowsWhatCame() {
        try (ForkedJvm jvm = ForkedJvm.start(Failing.class)) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> jvm.awaitLine("never"::equals, Duration.ofHours(1)))
                    .withMessageContaining("before the end")
                    .withMessageContaining("went wrong");
            assertThat(jvm.exitCode()).isEqualTo(1);
        }
    }

    @Test
    void aJvmEndsWithTheJvmThatStartedIt() {
        try (ForkedJvm parent = ForkedJvm.start(Parent.class)) {
            long child = Long.parseLong(parent.awaitLine(line -> line.matches("\\d+"), LIMIT));
            assertThat(OsProcesses.isRunning(child)).isTrue();

            parent.kill();

            await().atMost(LIMIT).until(() -> !OsProcesses.isRunning(child));
        }
    }

    static final class Waiter {
        private Waiter() {}

        public static void main(String[] args) throws InterruptedException {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
            System.out.println(System.getProperty("greeting") + " " + List.of(args));
            System.out.println("waiting");
            Thread.currentThread().join();
        }
    }

    static final class Failing {
        private Failing() {}

        public static void main(String[] args) {
            System.out.println("before the end");
            throw new IllegalArgumentException("went wrong");
        }
    }

    static final class Parent {
        private Parent() {}

        // The child is to be left behind.
        @SuppressWarnings("resource")
        public static void main(String[] args) throws InterruptedException {
            System.out.println(ForkedJvm.start(Waiter.class).pid());
            Thread.currentThread().join();
        }
    }
}
