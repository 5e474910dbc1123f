package io.onceflux.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import org.apache.kafka.common.utils.AppInfoParser;
import org.junit.jupiter.api.Test;

/** The build runs the tests with the client that it compiles with, and some of them with one of the next line. */
class ClientVersionTest {

    @Test
    void theClientIsTheOneThatTheBuildMeant() {
        assertThat(AppInfoParser.getVersion()).isEqualTo(System.getProperty("onceflux.kafka-clients"));
    }
}
