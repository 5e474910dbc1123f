package io.onceflux.services;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;

/** What a RabbitMQ node is told so that it keeps to its own ports, its own folder and loopback. */
record RabbitNodeSettings(int port, int distributionPort, int epmdPort) {
    static final String HOST = "127.0.0.1";
    private static final String LOOPBACK_ONLY = "-kernel inet_dist_use_interface {127,0,0,1}";

    static RabbitNodeSettings onFreePorts() {
        return new RabbitNodeSettings(FreePorts.next(), FreePorts.next(), FreePorts.next());
    }

    Map<String, String> environment(Path folder) {
        return Map.ofEntries(
                Map.entry("HOME", folder.toString()),
                Map.entry("ERL_EPMD_ADDRESS", HOST),
                Map.entry("ERL_EPMD_PORT", Integer.toString(epmdPort)),
                // With it the start script replaces itself by the Erlang VM, so that the process we see is the VM.
                Map.entry("RUNNING_UNDER_SYSTEMD", "true"),
                Map.entry("RABBITMQ_CONF_ENV_FILE", "/dev/null"),
                Map.entry("RABBITMQ_CONFIG_FILE", folder.resolve("rabbitmq").toString()),
                Map.entry("RABBITMQ_CTL_ERL_ARGS", LOOPBACK_ONLY),
                Map.entry("RABBITMQ_DIST_PORT", Integer.toString(distributionPort)),
                Map.entry(
                        "RABBITMQ_ENABLED_PLUGINS_FILE",
                        folder.resolve("enabled_plugins").toString()),
                Map.entry(
                        "RABBITMQ_GENERATED_CONFIG_DIR",
                        folder.resolve("config").toString()),
                Map.entry("RABBITMQ_LOG_BASE", folder.resolve("log").toString()),
                Map.entry("RABBITMQ_MNESIA_BASE", folder.resolve("data").toString()),
                Map.entry("RABBITMQ_NODENAME", "onceflux" + port + "@localhost"),
                Map.entry("RABBITMQ_NODE_IP_ADDRESS", HOST),
                Map.entry("RABBITMQ_NODE_PORT", Integer.toString(port)),
                Map.entry(
                        "RABBITMQ_PID_FILE", folder.resolve("rabbitmq.pidfile").toString()),
                Map.entry(
                        "RABBITMQ_PLUGINS_EXPAND_DIR", folder.resolve("plugins").toString()),
                Map.entry("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", LOOPBACK_ONLY + " +S 2:2"));
    }

    /** The lines of {@code rabbitmq.conf}, those given on top. */
    String conf(Map<String, String> more) {
        Map<String, String> lines = new LinkedHashMap<>();
        lines.put("listeners.tcp.1", HOST + ":" + port);
        lines.put("vm_memory_high_watermark.absolute", "512MB");
        lines.put("disk_free_limit.absolute", "50MB");
        lines.put("log.console", "false");
        lines.put("log.file.level", "info");
        lines.putAll(more);
        return lines.entrySet().stream()
                .map(line -> line.getKey() + " = " + line.getValue() + "\n")
                .collect(Collectors.joining());
    }
}
