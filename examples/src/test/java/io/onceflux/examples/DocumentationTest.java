package io.onceflux.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The code in the README and in docs is code that compiles and is tested: a region of the examples or of their tests. */
class DocumentationTest {

    private static final Path ROOT = Path.of("..");
    private static final Path DOCS = ROOT.resolve("docs");
    private static final Pattern BLOCK =
            Pattern.compile("(?:<!-- (region|file): (\\S+) -->\\n *)?```(\\w+)\\n(.*?)\\n *```", Pattern.DOTALL);
    private static final Pattern REGION = Pattern.compile("// region: (\\w+)\\n(.*?)\\n *// endregion", Pattern.DOTALL);

    @Test
    void everyBlockOfJavaIsARegionAndEveryRegionIsInADocument() throws IOException {
        Map<String, String> regions = regions();
        Set<String> shown = new TreeSet<>();
        for (Path document : documents()) {
            Matcher block = BLOCK.matcher(Files.readString(document));
            while (block.find()) {
                String kind = block.group(1);
                String name = block.group(2);
                String code = block.group(4).stripIndent();
                if (kind == null) {
                    assertThat(block.group(3))
                            .as("%s: language of a block that is no region: %s", document, code)
                            .isNotEqualTo("java");
                } else {
                    String source = kind.equals("file")
                            ? Files.readString(ROOT.resolve(name)).strip()
                            : regions.get(name);
                    assertThat(code).as("%s: %s %s", document, kind, name).isEqualTo(source);
                    shown.add(name);
                }
            }
        }
        assertThat(shown).as("what documents show").containsAll(regions.keySet());
    }

    /** Not those on decisions: they are of their time. */
    private static List<Path> documents() throws IOException {
        return Stream.concat(
                        Stream.of(ROOT.resolve("README.md")),
                        files(DOCS, ".md").stream().filter(file -> !file.startsWith(DOCS.resolve("decisions"))))
                .toList();
    }

    private static Map<String, String> regions() throws IOException {
        Map<String, String> regions = new TreeMap<>();
        for (Path file : files(Path.of("src"), ".java")) {
            Matcher region = REGION.matcher(Files.readString(file));
            while (region.find()) {
                assertThat(regions.put(region.group(1), region.group(2).stripIndent()))
                        .as("%s: another region '%s'", file, region.group(1))
                        .isNull();
            }
        }
        return regions;
    }

    private static List<Path> files(Path folder, String suffix) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            return all.filter(file -> file.toString().endsWith(suffix)).toList();
        }
    }
}
