package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.text.Normalizer;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MessageKeyTest {

    @Test
    void anIdOf255BytesIsStoredAsItIs() {
        String id = "é".repeat(127) + "x";
        assertThat(id.getBytes(StandardCharsets.UTF_8)).hasSize(255);
        assertThat(MessageKey.of("c", id).id()).isEqualTo(id);
    }

    @Test
    void aLongerIdIsStoredAsItsHash() {
        assertThat(MessageKey.of("c", "é".repeat(128)).id()).matches("sha256:[0-9a-f]{64}");
    }

    @Test
    void longIdsWithTheSameBeginningStayDistinct() {
        String start = random(2_000, 1);
        MessageKey one = MessageKey.of("c", start + random(1_000, 2));
        MessageKey other = MessageKey.of("c", start + random(1_000, 3));

        assertThat(one).isNotEqualTo(other);
        assertThat(one).isEqualTo(MessageKey.of("c", start + random(1_000, 2)));
    }

    @Test
    void anIdThatLooksLikeAHashCannotEqualTheHashOfAnother() {
        String hashed = MessageKey.of("c", "x".repeat(300)).id();
        assertThat(MessageKey.of("c", hashed).id()).isNotEqualTo(hashed);
        assertThat(MessageKey.of("c", "sha256:short").id()).matches("sha256:[0-9a-f]{64}");
    }

    @Test
    void consumerAndIdDoNotRunIntoEachOther() {
        assertThat(MessageKey.of("a:b", "c")).isNotEqualTo(MessageKey.of("a", "b:c"));
        assertThat(MessageKey.of("t-1", "1")).isNotEqualTo(MessageKey.of("t", "11"));
        assertThat(MessageKey.of("a", "1")).isNotEqualTo(MessageKey.of("b", "1"));
    }

    @Test
    void idsAreComparedByteByByte() {
        String composed = Normalizer.normalize("café", Normalizer.Form.NFC);
        String decomposed = Normalizer.normalize("café", Normalizer.Form.NFD);
        assertThat(MessageKey.of("c", composed)).isNotEqualTo(MessageKey.of("c", decomposed));
        assertThat(MessageKey.of("c", "Key")).isNotEqualTo(MessageKey.of("c", "key"));
        assertThat(MessageKey.of("c", "k")).isNotEqualTo(MessageKey.of("c", "k "));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "\t\n", "\u2003"})
    void anIdThatIsBlankIsRefused(String id) {
        assertThatThrownBy(() -> MessageKey.of("c", id))
                .isInstanceOf(PermanentFailure.class)
                .hasMessageMatching("the message id is (empty|blank)");
    }

    @Test
    void anIdWithANulIsRefusedBecausePostgresCannotStoreIt() {
        assertThatThrownBy(() -> MessageKey.of("c", "a\0b"))
                .isInstanceOf(PermanentFailure.class)
                .hasMessage("the message id has a NUL character at index 1");
    }

    @Test
    void unpairedSurrogatesAreRefusedBecauseTheyWouldBecomeEqual() {
        for (String id : new String[] {"a\uD83D", "\uDE00b", "\uDE00\uD83D", "\uD83D\uD83D\uDE00"}) {
            assertThatThrownBy(() -> MessageKey.of("c", id))
                    .isInstanceOf(PermanentFailure.class)
                    .hasMessageContaining("unpaired surrogate");
        }
        assertThat(MessageKey.of("c", "smile \uD83D\uDE00").id()).isEqualTo("smile \uD83D\uDE00");
    }

    static String random(int length, long seed) {
        return new Random(seed)
                .ints(length, '!', '~')
                .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
                .toString();
    }
}
