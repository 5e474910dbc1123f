package io.onceflux.examples;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

/** Whoever takes the README's POM gets what is tested here. */
class ReadmePomTest {

    private static final Path ROOT = Path.of("..");
    private static final Pattern BLOCK = Pattern.compile("```xml\\n(.*?)```", Pattern.DOTALL);
    private static final Pattern PROPERTY = Pattern.compile("\\$\\{(.+)}");

    @Test
    void versionsInTheReadmeAreThoseOfTheBuild() throws Exception {
        Matcher block = BLOCK.matcher(Files.readString(ROOT.resolve("README.md")));
        assertThat(block.find()).isTrue();
        Map<String, String> shown = versions(xml("<project>" + block.group(1) + "</project>"));
        Map<String, String> built = versions(xml(Files.readString(ROOT.resolve("pom.xml"))));
        assertThat(shown)
                .containsKeys("io.netty:netty-bom", "io.onceflux:onceflux-rabbit", "io.micrometer:micrometer-core");
        built.put("io.micrometer:micrometer-core", built.get("io.micrometer:micrometer-bom"));
        assertThat(built).containsAllEntriesOf(shown);
    }

    private static Element xml(String text) throws Exception {
        return DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(new ByteArrayInputStream(text.getBytes(UTF_8)))
                .getDocumentElement();
    }

    private static Map<String, String> versions(Element project) {
        Map<String, String> versions = new TreeMap<>();
        NodeList found = project.getElementsByTagName("dependency");
        for (int i = 0; i < found.getLength(); i++) {
            Element dependency = (Element) found.item(i);
            versions.put(
                    text(dependency, "groupId") + ":" + text(dependency, "artifactId"),
                    resolved(project, text(dependency, "version")));
        }
        return versions;
    }

    private static String resolved(Element project, String version) {
        Matcher property = PROPERTY.matcher(version);
        return property.matches() ? text(project, property.group(1).replaceFirst("^project\\.", "")) : version;
    }

    private static String text(Element parent, String name) {
        return parent.getElementsByTagName(name).item(0).getTextContent();
    }
}
