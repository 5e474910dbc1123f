package io.onceflux;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TransactionControlTest {

    @ParameterizedTest
    @ValueSource(
            strings = {
                "COMMIT",
                "Commit;",
                " \n\t-- a comment\n/* another; */ ROLLBACK",
                "rollback work",
                "ROLLBACK AND CHAIN",
                "END",
                "ABORT",
                "BEGIN",
                "START TRANSACTION",
                "PREPARE  TRANSACTION 'x'",
                ";COMMIT",
                "SELECT 1; COMMIT",
                "SELECT ';', 'it''s', \"a;b\", $$ ; $$, $x$ ; $x$ /* ; */; commit",
                "INSERT INTO t VALUES (1);\n-- done\nROLLBACK;",
            })
    void sqlThatBeginsOrEndsATransactionIsRefused(String sql) {
        assertThatThrownBy(() -> TransactionControl.refuseIn(sql))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("its transaction is begun and ended by OnceFlux");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                ";",
                "INSERT INTO t VALUES ('; COMMIT')",
                "SELECT 1;",
                "SELECT '; ROLLBACK'; SELECT \"; END\"",
                "SELECT $$; COMMIT$$; SELECT 1",
                "SELECT 1 -- ; COMMIT\n; SELECT 2",
                "SELECT CASE WHEN true THEN 1\nEND",
                "ROLLBACK TO SAVEPOINT a",
                "ROLLBACK TO a",
                "rollback work to savepoint a",
                "SAVEPOINT a",
                "RELEASE SAVEPOINT a",
                "PREPARE plan AS SELECT 1",
                "COMMENT ON TABLE t IS 'x'",
                "endpoints",
                "WITH x AS (SELECT 1) SELECT * FROM x",
            })
    void anyOtherSqlPasses(String sql) {
        assertThatCode(() -> TransactionControl.refuseIn(sql)).doesNotThrowAnyException();
    }
}
