package io.onceflux.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The code in the README is code that compiles and is tested. */
class ReadmeTest {

    private static final Path ROOT = Path.of("..");
    private static final Path EXAMPLE = Path.of("src/main/java/io/onceflux/examples/loyalty");
    private static final Pattern SNIPPET =
            Pattern.compile("<!-- (region|file): (\\S+) -->\\n```\\w+\\n(.*?)\\n```", Pattern.DOTALL);
    private static final Pattern REGION =
            Pattern.compile("    // region: (\\w+)\\n(.*?)\\n    // endregion", Pattern.DOTALL);

    @Test
    void everySnippetIsARegionOfTheExampleOrAFile() throws IOException {
        String readme = Files.readString(ROOT.resolve("README.md"));
        Map<String, String> regions = regions();
        Matcher snippet = SNIPPET.matcher(readme);
        int found = 0;
        while (snippet.find()) {
            String source = snippet.group(1).equals("region")
                    ? regions.get(snippet.group(2))
                    : Files.readString(ROOT.resolve(snippet.group(2))).strip();
            assertThat(snippet.group(3)).as(snippet.group(2)).isEqualTo(source);
            found++;
        }
        assertThat(found).isEqualTo(5);
        assertThat(readme.split("```java\\n", -1))
                .as("no other Java in the README")
                .hasSize(5);
    }

    private static Map<String, String> regions() throws IOException {
        Map<String, String> regions = new TreeMap<>();
        for (String file : List.of("LoyaltyService.java", "LoyaltyApplication.java")) {
            Matcher region = REGION.matcher(Files.readString(EXAMPLE.resolve(file)));
            while (region.find()) {
                regions.put(region.group(1), region.group(2).stripIndent());
            }
        }
        return regions;
    }
}
