package io.onceflux.benchmarks.variant;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CaseTest {

    @ParameterizedTest
    @ValueSource(
            strings = {
                "jdbc",
                "per-message/lanes=1",
                "grouped/lanes=16/batch=512",
                "per-message/duplicates=99/recent-keys",
                "set-based/without-claim",
                "grouped/half-load-of-jdbc",
                "grouped/customers=1/unordered",
                "claims/rows=50000000"
            })
    void aCaseIsWrittenAsItIsRead(String text) {
        assertThat(Case.parse(text)).hasToString(text);
    }

    @Test
    void aSettingThatIsTheUsualOneIsNotWritten() {
        assertThat(Case.parse("jdbc/lanes=8/batch=1/duplicates=0")).hasToString("jdbc");
    }

    @Test
    void anUnknownSettingIsRefused() {
        assertThatThrownBy(() -> Case.parse("jdbc/lane=1")).hasMessageContaining("lane=1");
    }

    @Test
    void halfALoadIsHalfOfTheSameCaseOrOfTheLoop() {
        assertThat(Case.parse("grouped/batch=8/half-load").reference()).hasToString("grouped/batch=8");
        assertThat(Case.parse("grouped/batch=8/half-load-of-jdbc").reference()).hasToString("jdbc");
    }
}
