package io.onceflux.benchmarks;

import com.sun.management.OperatingSystemMXBean;
import com.zaxxer.hikari.HikariDataSource;
import io.netty.buffer.ByteBuf;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.LinkedHashMap;
import java.util.Map;
import org.openjdk.jmh.annotations.Benchmark;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.core.SpringVersion;
import reactor.core.publisher.Flux;

/** What has to be known about a figure: the machine, the versions, the command. */
final class Conditions {

    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private static final long LOOKED_AT_MILLIS = 4_000;

    private Conditions() {}

    /**
     * The share of all processors that others use, from 0 to 1, over some seconds; before anything is started here. Not the load
     * average: that remembers a build that is over.
     */
    static double load() throws InterruptedException {
        double unused = SYSTEM.getCpuLoad(); // The next one counts from here.
        Thread.sleep(LOOKED_AT_MILLIS);
        return SYSTEM.getCpuLoad();
    }

    /**
     * Whether so much was going on beside that figures are worth nothing.
     *
     * @param before what {@link #load()} said
     * @param meanwhile what {@link OtherWork} says
     */
    static boolean isBusy(double before, double meanwhile) {
        return before > 0.15 || meanwhile > 0.03;
    }

    static Map<String, String> describe(String command, double before, double meanwhile, Servers servers) {
        Map<String, String> conditions = new LinkedHashMap<>();
        conditions.put("Command", command);
        conditions.put("Date", LocalDate.now(ZoneOffset.UTC).toString());
        conditions.put("Commit", System.getProperty("onceflux.commit", "unknown"));
        conditions.put("Processor", SYSTEM.getAvailableProcessors() + " x " + processor());
        conditions.put("Memory", "%d GB".formatted(Math.round(SYSTEM.getTotalMemorySize() / 1e9)));
        conditions.put("System", System.getProperty("os.name") + " " + System.getProperty("os.version"));
        conditions.put("Processors in use before", "%.0f %%".formatted(100 * before));
        conditions.put("Processors in use by others meanwhile", "%.1f %%".formatted(100 * meanwhile));
        conditions.put("Java", System.getProperty("java.vm.name") + " " + System.getProperty("java.vm.version"));
        conditions.putAll(servers.versions());
        conditions.put("Spring Framework", String.valueOf(SpringVersion.getVersion()));
        conditions.put("Spring AMQP", versionOf(RabbitTemplate.class));
        conditions.put("Reactor", versionOf(Flux.class));
        conditions.put("Netty", versionOf(ByteBuf.class));
        conditions.put("r2dbc-postgresql", versionOf(PostgresqlConnectionFactory.class));
        conditions.put("HikariCP", versionOf(HikariDataSource.class));
        conditions.put("JMH", versionOf(Benchmark.class));
        return conditions;
    }

    /** From the manifest, or from the name of the jar, which Maven gave it. */
    private static String versionOf(Class<?> type) {
        String version = type.getPackage().getImplementationVersion();
        if (version != null) {
            return version;
        }
        Path jar =
                Path.of(type.getProtectionDomain().getCodeSource().getLocation().getPath());
        return String.valueOf(jar.getFileName()).replaceAll("^.*?-(\\d.*)\\.jar$", "$1");
    }

    private static String processor() {
        Path linux = Path.of("/proc/cpuinfo");
        if (Files.exists(linux)) {
            try {
                return Files.readAllLines(linux).stream()
                        .filter(line -> line.startsWith("model name"))
                        .map(line -> line.replaceAll("^.*?:\\s*", ""))
                        .findFirst()
                        .orElse(System.getProperty("os.arch"));
            } catch (IOException e) {
                return System.getProperty("os.arch");
            }
        }
        return System.getProperty("os.arch");
    }
}
