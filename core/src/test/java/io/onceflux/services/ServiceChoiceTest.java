package io.onceflux.services;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.util.Map;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

class ServiceChoiceTest {
    @Test
    void anAddressComesFirst() {
        assertThat(decide(Map.of("ADDRESS", "there"), ServiceChoiceTest::notAsked))
                .isEqualTo(ServiceMode.ENV);
    }

    @Test
    void withoutAnAddressDockerIsTaken() {
        assertThat(decide(Map.of(), ServiceChoiceTest::dockerAnswers)).isEqualTo(ServiceMode.DOCKER);
        assertThat(decide(Map.of("ADDRESS", " "), ServiceChoiceTest::dockerAnswers))
                .isEqualTo(ServiceMode.DOCKER);
    }

    @Test
    void withoutDockerTheLocalOneIsTaken() {
        assertThat(decide(Map.of(), ServiceChoiceTest::noDocker)).isEqualTo(ServiceMode.LOCAL);
        assertThat(decide(Map.of("ONCEFLUX_SERVICES", "auto"), ServiceChoiceTest::noDocker))
                .isEqualTo(ServiceMode.LOCAL);
    }

    @Test
    void localIsTakenWhateverElseIsThere() {
        assertThat(decide(Map.of("ONCEFLUX_SERVICES", "local", "ADDRESS", "there"), ServiceChoiceTest::notAsked))
                .isEqualTo(ServiceMode.LOCAL);
    }

    @Test
    void askingForAnAddressThatIsNotSetSaysWhatToSet() {
        assertThatIllegalStateException()
                .isThrownBy(() -> decide(Map.of("ONCEFLUX_SERVICES", "env"), ServiceChoiceTest::notAsked))
                .withMessage(
                        "ONCEFLUX_SERVICES=env asks for a Server by address, but ADDRESS is not set: set it to some://address");
    }

    @Test
    void askingForDockerWhereNoneAnswersSaysSo() {
        assertThatIllegalStateException()
                .isThrownBy(() ->
                        decide(Map.of("ONCEFLUX_SERVICES", "docker", "ADDRESS", "there"), ServiceChoiceTest::noDocker))
                .withMessageContaining("no Docker engine answers");
    }

    @Test
    void anUnknownChoiceIsRefused() {
        assertThatIllegalStateException()
                .isThrownBy(() -> decide(Map.of("ONCEFLUX_SERVICES", "podman"), ServiceChoiceTest::notAsked))
                .withMessageContaining("podman is none of auto, env, docker, local");
    }

    @Test
    void settingsAreRefusedWhereTheyCannotBeApplied() {
        assertThatIllegalStateException()
                .isThrownBy(() -> choice(Map.of("ADDRESS", "there"), ServiceChoiceTest::notAsked)
                        .refuseSettings(Map.of("fsync", "off")))
                .withMessageContaining("[fsync]")
                .withMessageContaining("unset it or set ONCEFLUX_SERVICES=local");
    }

    private static boolean dockerAnswers() {
        return true;
    }

    private static boolean noDocker() {
        return false;
    }

    private static boolean notAsked() {
        throw new AssertionError("Docker was asked although the answer does not matter");
    }

    private static ServiceMode decide(Map<String, String> env, BooleanSupplier docker) {
        return choice(env, docker).decide();
    }

    private static ServiceChoice choice(Map<String, String> env, BooleanSupplier docker) {
        return new ServiceChoice("Server", "ADDRESS", "some://address", env, docker);
    }
}
