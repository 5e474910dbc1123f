package io.onceflux.benchmarks.report;

import java.util.List;
import java.util.Map;

/** What cases and parts are called where people read. */
final class Titles {

    private static final Map<String, String> WAYS = Map.ofEntries(
            Map.entry("jdbc", "JDBC loop"),
            Map.entry("by-hand-per-message", "Spring R2DBC by hand, a message at a time"),
            Map.entry("by-hand-grouped", "Spring R2DBC by hand, grouped"),
            Map.entry("by-hand-set-based", "Spring R2DBC by hand, set-based"),
            Map.entry("per-message", "OnceFlux, a message at a time"),
            Map.entry("grouped", "OnceFlux, grouped"),
            Map.entry("set-based", "OnceFlux, set-based"),
            Map.entry("pipeline-per-message", "Pipeline alone, a message at a time"),
            Map.entry("pipeline", "Pipeline alone, grouped"),
            Map.entry("rabbit-bare", "RabbitMQ's own client, which does nothing"),
            Map.entry("spring-amqp", "Spring AMQP + JdbcTemplate"),
            Map.entry("rabbit-per-message", "OnceFlux, a message at a time"),
            Map.entry("rabbit-grouped", "OnceFlux, grouped"),
            Map.entry("rabbit-set-based", "OnceFlux, set-based"),
            Map.entry("kafka-per-message", "OnceFlux, a message at a time"),
            Map.entry("kafka-grouped", "OnceFlux, grouped"),
            Map.entry("kafka-set-based", "OnceFlux, set-based"),
            Map.entry("kafka-fenced", "OnceFlux, set-based, offset fence"),
            Map.entry("relay", "Outbox"),
            Map.entry("claims", "Claims"),
            Map.entry("partitions", "Claims in partitions, dropped whole"),
            Map.entry("batches", "Claims in a plain table, deleted in batches"));

    private static final Map<String, String> PARTS = Map.ofEntries(
            Map.entry("database", "From memory into PostgreSQL"),
            Map.entry("rabbit", "From RabbitMQ into PostgreSQL"),
            Map.entry("kafka", "From Kafka into PostgreSQL"),
            Map.entry("pipeline", "The pipeline alone"),
            Map.entry("latency", "Latency at half load"),
            Map.entry("duplicates", "Shares of duplicates"),
            Map.entry("lanes", "Lanes and messages a transaction"),
            Map.entry("hot-keys", "Customers that all messages are of"),
            Map.entry("scale", "Processes on one topic, one PostgreSQL"),
            Map.entry("table", "Size of the claim table"),
            Map.entry("retention", "Claims that are removed meanwhile"),
            Map.entry("relay", "Relays of an outbox"),
            Map.entry("partitions", "A day's claims that are removed: claims a second"));

    private Titles() {}

    static String ofPart(String part) {
        return PARTS.getOrDefault(part, part);
    }

    static String of(String what) {
        List<String> parts = List.of(what.split("/", -1));
        StringBuilder title = new StringBuilder(WAYS.getOrDefault(parts.get(0), parts.get(0)));
        for (String setting : parts.subList(1, parts.size())) {
            title.append(", ").append(setting(setting));
        }
        return title.toString();
    }

    private static String setting(String setting) {
        String value = valueOf(setting);
        return switch (setting.replaceAll("=.*", "")) {
            case "processes" -> value + (value.equals("1") ? " process" : " processes");
            case "instances" -> value + (value.equals("1") ? " relay" : " relays");
            case "lanes" -> value + (value.equals("1") ? " lane" : " lanes");
            case "batch" -> "up to " + value + " a transaction";
            case "duplicates" -> value + " % duplicates";
            case "without-claim" -> "without the claim";
            case "recent-keys" -> "RecentKeys";
            case "rows" -> "%,d rows before".formatted(Long.valueOf(value));
            case "customers" -> value + (value.equals("1") ? " customer" : " customers");
            case "unordered" -> "without orderedBy";
            case "old-claims" -> "while old claims are removed";
            case "quiet" -> "nothing else going on";
            case "while-removed" -> "while a day is removed";
            case "half-load" -> "at half its maximum";
            case "half-load-of-jdbc" -> "at half the JDBC loop's maximum";
            default -> setting;
        };
    }

    /** What is behind the equals sign. */
    static String valueOf(String setting) {
        return setting.substring(setting.indexOf('=') + 1);
    }
}
