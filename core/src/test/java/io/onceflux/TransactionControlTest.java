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
                "/* a /* nested */ comment */ COMMIT",
                "SELECT 1 /* ; /* ; */ ; */; COMMIT",
                "-- ends with a carriage return\rCOMMIT",
                "SELECT a$b$ FROM t; COMMIT; SELECT c$b$ FROM t",
                "SELECT $1; COMMIT; SELECT $1",
                "SELECT E'it''s \\' this'; COMMIT; SELECT ''",
                "SELECT e'one\\''\n'two\\''; COMMIT; SELECT ''",
                "SELECT $ä$ ; $ä$; COMMIT",
                "PREPARE/**/TRANSACTION 'x'",
                "ROLLBACK /* not TO */ AND CHAIN",
                "SELECT 1;;\n;COMMIT",
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
                "SELECT E'\\'; COMMIT'",
                "SELECT name'\\'; SELECT '; COMMIT'",
                "SELECT $a$ $b$; COMMIT $a$",
                "/* ; COMMIT /* */ ; COMMIT */ SELECT 1",
                "SELECT '; COMMIT",
                "SELECT $$; COMMIT",
                "/* ; COMMIT",
                "ROLLBACK/**/TO/**/a",
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
