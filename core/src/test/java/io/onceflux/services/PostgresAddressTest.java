package io.onceflux.services;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PostgresAddressTest {
    @Test
    void anAddressIsReadAndWrittenBackForAnotherDatabase() {
        PostgresAddress address =
                PostgresAddress.parse("r2dbc:postgresql://us%40er:p%3A%2Bw%20d@db.example:6543/app?sslMode=require");

        assertThat(address)
                .isEqualTo(new PostgresAddress("db.example", 6543, "us@er", "p:+w d", "app", "?sslMode=require"));
        assertThat(address.r2dbcUrl("other"))
                .isEqualTo("r2dbc:postgresql://us%40er:p%3A%2Bw%20d@db.example:6543/other?sslMode=require");
    }

    @Test
    void thePortAndThePasswordMayBeLeftOut() {
        assertThat(PostgresAddress.parse("r2dbc:postgresql://me@localhost/app").r2dbcUrl("app"))
                .isEqualTo("r2dbc:postgresql://me@localhost:5432/app");
    }

    @Test
    void thePasswordIsNeverPrinted() {
        assertThat(PostgresAddress.parse("r2dbc:postgresql://me:s3cret@localhost/app"))
                .hasToString("localhost:5432/app as me");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "jdbc:postgresql://me:s3cret@localhost/app",
                "r2dbc:mysql://me:s3cret@localhost/app",
                "r2dbc:postgresql://localhost/app",
                "r2dbc:postgresql://me:s3cret@localhost",
                "r2dbc:postgresql://me:s3cret%@localhost/app"
            })
    void whatIsNoAddressIsRefusedWithoutQuotingIt(String url) {
        assertThatIllegalStateException()
                .isThrownBy(() -> PostgresAddress.parse(url))
                .withMessage(
                        "ONCEFLUX_POSTGRES_URL is not of the form r2dbc:postgresql://user:password@host:5432/database.")
                .withNoCause();
    }
}
