package io.onceflux.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ClaimTableTest {

    @Test
    void theResourceThatMigrationsCopyIsWhatTheDefaultTableCreates() throws IOException {
        try (InputStream resource = ClaimTable.class.getResourceAsStream("processed_messages.sql")) {
            String sql = new String(Objects.requireNonNull(resource).readAllBytes(), StandardCharsets.UTF_8);
            assertThat(sql).isEqualTo(ClaimTable.processedMessages().createSql());
        }
    }

    @Test
    void namesAreQuotedAndTakenLiterally() {
        assertThat(new Identifier("Order \"x\"; DROP TABLE y --").quoted())
                .isEqualTo("\"Order \"\"x\"\"; DROP TABLE y --\"");
        assertThat(ClaimTable.named("In\"box").inSchema("S").createSql())
                .startsWith("CREATE TABLE IF NOT EXISTS \"S\".\"In\"\"box\" (");
    }

    @Test
    void aNameMadeFromALongOneIsCutBetweenCharactersAndStaysApartFromThoseThatBeginAlike() {
        assertThat(new Identifier("letters").with("_key").name()).isEqualTo("letters_key");
        Identifier one = new Identifier("\uD83D\uDE00".repeat(15) + "a").with("_key");
        Identifier other = new Identifier("\uD83D\uDE00".repeat(15) + "b").with("_key");
        assertThat(one.name()).matches("(\uD83D\uDE00){12}_[0-9a-f]{8}_key").isNotEqualTo(other.name());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "a\0b", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"})
    void aNameThatPostgresCouldNotTakeLiterallyIsRefused(String name) {
        assertThatThrownBy(() -> ClaimTable.named(name)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> ClaimTable.named("t").withKeyColumn(name))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    @SuppressWarnings("NullAway") // as from code without annotations
    void aNameThatIsNullIsRefusedWithASentence() {
        for (ThrowingCallable call : List.<ThrowingCallable>of(
                () -> ClaimTable.named(null),
                () -> ClaimTable.named("t").inSchema(null),
                () -> ClaimTable.named("t").withOneColumnKey(null),
                () -> DeadLetterTable.named(null),
                () -> DeadLetterTable.deadLetters().inSchema(null))) {
            assertThatThrownBy(call)
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("a schema, table or column name must not be null");
        }
    }

    @Test
    void aTableIsDescribedInTheWordsOfAPerson() {
        assertThat(ClaimTable.named("inbox").inSchema("billing")).hasToString("billing.inbox");
    }

    @Test
    void aUuidKeyIsWrittenAsPostgresGivesItBack() {
        assertThat(KeyType.UUID_TYPE.canonical("0191D2A8-0000-7000-8000-00000000ABCD"))
                .isEqualTo("0191d2a8-0000-7000-8000-00000000abcd");
        for (String no : new String[] {"order-1", "1-1-1-1-1", "{0191d2a8-0000-7000-8000-00000000abcd}"}) {
            assertThatThrownBy(() -> KeyType.UUID_TYPE.canonical(no)).isInstanceOf(UnstorableIdException.class);
        }
    }
}
