package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Row;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import reactor.core.publisher.Mono;

/** Looks in the catalogue whether a claim table is there, can be written to, and makes its keys unique. */
final class ClaimTableCheck {

    private static final int LONGEST_ID = 255;

    /** What the modifier of a varchar(n) has above n. */
    private static final int VARCHAR_HEADER = 4;

    private static final String TABLE = """
            SELECT c.oid::bigint AS oid, c.relkind::text AS kind, c.relpersistence::text AS persistence,
                   has_table_privilege(c.oid, 'INSERT') OR has_any_column_privilege(c.oid, 'INSERT') AS may_insert,
                   has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT') AS may_select,
                   current_user::text AS role, n.nspname::text AS schema, current_setting('default_transaction_deferrable') AS default_deferrable,
                   (SELECT system_identifier FROM pg_control_system())
                       || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())
                       || '/' || c.oid AS identity
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)""";

    private static final String COLUMNS = """
            SELECT attname::text AS name, atttypid::regtype::text AS type, atttypmod AS modifier,
                   attnotnull AND NOT atthasdef AND attidentity = '' AS needs_value, attnotnull OR atthasdef AS is_filled
            FROM pg_attribute WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped""";

    private final ClaimTable table;

    ClaimTableCheck(ClaimTable table) {
        this.table = table;
    }

    Mono<CheckedClaimTable> run(Connection connection) {
        return Server.requireVersion(connection)
                .then(Queries.rows(connection, TABLE, Found::read, table.quotedName())
                        .next()
                        .switchIfEmpty(Mono.error(() -> UnfitTableException.missing(table, table.createSql()))))
                .flatMap(found -> {
                    found.requireUsable(table);
                    return Mono.zip(
                                    Queries.rows(connection, COLUMNS, Column::read, found.oid)
                                            .collectList(),
                                    UniqueIndex.of(connection, found.oid),
                                    Server.warnings(connection),
                                    partitions(connection),
                                    undeclared(connection, found))
                            .map(all -> {
                                all.getT5().requireInKey(table);
                                return fit(found, all.getT1(), all.getT2(), all.getT3(), all.getT4());
                            });
                });
    }

    private Mono<Optional<ClaimPartitions.Found>> partitions(Connection connection) {
        return table.hasBuckets()
                ? new ClaimPartitions(table).look(connection).map(Optional::of)
                : Mono.just(Optional.empty());
    }

    private Mono<PartitionKey> undeclared(Connection connection, Found found) {
        return found.kind.equals("p") && !table.hasBuckets()
                ? PartitionKey.of(connection, found.oid)
                : Mono.just(PartitionKey.NONE);
    }

    private CheckedClaimTable fit(
            Found found,
            List<Column> columns,
            List<UniqueIndex> indexes,
            List<String> ofServer,
            Optional<ClaimPartitions.Found> partitions) {
        Identifier consumer = table.consumerColumn();
        if (consumer != null) {
            requireText(columns, consumer);
        }
        Column key = column(columns, table.keyColumn());
        KeyType keyType = key.type.equals("uuid") ? KeyType.UUID_TYPE : KeyType.TEXT;
        if (keyType == KeyType.TEXT) {
            requireText(columns, table.keyColumn());
        }
        Identifier processedAt = table.processedAtColumn();
        if (processedAt != null) {
            column(columns, processedAt);
        }
        requireFingerprint(columns);
        partitions.ifPresent(those -> requireBuckets(columns, those));
        requireNoOtherValues(columns);
        UniqueIndex.require(indexes, table.keyColumns(), table.toString(), table.quotedName());
        // With its schema: an effect may change the search path, and the change stays on the pooled connection.
        ClaimTable withSchema = table.inSchema(found.schema);
        return new CheckedClaimTable(
                withSchema,
                keyType,
                partitions
                        .map(those -> new PartitionRange(withSchema, Objects.requireNonNull(table.buckets()), those))
                        .orElse(null),
                key.length(),
                consumer == null ? Integer.MAX_VALUE : column(columns, consumer).length(),
                found.identity,
                found.defaultDeferrable.equals("off"),
                warnings(ofServer, key, partitions));
    }

    private Column column(List<Column> columns, Identifier name) {
        return columns.stream()
                .filter(column -> column.name.equals(name.name()))
                .findFirst()
                .orElseThrow(() -> unfit("Table %s has no column %s; it has %s. Name the right one on the ClaimTable."
                        .formatted(
                                table, name, columns.stream().map(Column::name).toList())));
    }

    private void requireText(List<Column> columns, Identifier name) {
        Column column = column(columns, name);
        if (!Set.of("text", "character varying").contains(column.type)) {
            throw unfit(
                    "Column %s of table %s has type %s, which does not compare ids byte by byte; use text, varchar%s."
                            .formatted(name, table, column.type, name.equals(table.keyColumn()) ? " or uuid" : ""));
        }
    }

    private void requireBuckets(List<Column> columns, ClaimPartitions.Found partitions) {
        Buckets buckets = Objects.requireNonNull(table.buckets());
        Column column = column(columns, buckets.column());
        if (!column.type.equals(buckets.width().fullType())) {
            throw unfit("Column %s of table %s has type %s, but %s needs %s."
                    .formatted(
                            buckets.column(),
                            table,
                            column.type,
                            buckets,
                            buckets.width().fullType()));
        }
        new ClaimPartitions(table).requireFit(partitions);
        if (partitions.to() == null) {
            throw unfit(
                    "Table %s has no partition yet. Let its Retention run once before the consumer starts, or every claim would wait."
                            .formatted(table));
        }
    }

    private void requireFingerprint(List<Column> columns) {
        Identifier fingerprint = table.fingerprintColumn();
        if (fingerprint == null) {
            return;
        }
        List<Column> found = columns.stream()
                .filter(column -> column.name.equals(fingerprint.name()))
                .toList();
        if (found.isEmpty()) {
            throw unfit("Table %s has no column %s for fingerprints. Add it: ALTER TABLE %s ADD COLUMN %s bigint;"
                    .formatted(table, fingerprint, table.quotedName(), fingerprint.quoted()));
        }
        if (!found.get(0).type.equals("bigint") || found.get(0).isFilled) {
            throw unfit(
                    ("Column %s of table %s must be of type bigint, may be null, and has no default: claims without a fingerprint have"
                                    + " none, and any other value would make each message that comes again a conflict.")
                            .formatted(fingerprint, table));
        }
    }

    private void requireNoOtherValues(List<Column> columns) {
        Set<String> ours = table.keyColumns().stream().map(Identifier::name).collect(Collectors.toSet());
        Identifier processedAt = table.processedAtColumn();
        List<String> others = columns.stream()
                .filter(column -> column.needsValue
                        && !ours.contains(column.name)
                        && (processedAt == null || !column.name.equals(processedAt.name())))
                .map(Column::name)
                .toList();
        if (!others.isEmpty()) {
            throw unfit(
                    "Table %s has NOT NULL columns without a default that a claim does not fill: %s. Give them a default."
                            .formatted(table, others));
        }
    }

    private List<String> warnings(List<String> ofServer, Column key, Optional<ClaimPartitions.Found> partitions) {
        List<String> warnings = new ArrayList<>(ofServer);
        int length = key.length();
        if (length < LONGEST_ID) {
            warnings.add("column %s of table %s holds %d characters: messages with a longer id become dead letters."
                    .formatted(table.keyColumn(), table, length));
        }
        partitions
                .filter(those -> those.endsBefore(those.now()))
                .ifPresent(those -> warnings.add(
                        "table %s has no partition for now, the last one ends at %s: claims wait until its Retention has made one."
                                .formatted(table, those.to())));
        partitions.ifPresent(those -> warnings.addAll(new ClaimPartitions(table).warningsOf(those)));
        return warnings;
    }

    private static UnfitTableException unfit(String sentence) {
        return new UnfitTableException(sentence);
    }

    private record Found(
            Long oid,
            String kind,
            String persistence,
            boolean mayInsert,
            boolean maySelect,
            String role,
            String schema,
            String defaultDeferrable,
            String identity) {

        static Found read(Row row) {
            return new Found(
                    value(row, "oid", Long.class),
                    value(row, "kind", String.class),
                    value(row, "persistence", String.class),
                    value(row, "may_insert", Boolean.class),
                    value(row, "may_select", Boolean.class),
                    value(row, "role", String.class),
                    value(row, "schema", String.class),
                    value(row, "default_deferrable", String.class),
                    value(row, "identity", String.class));
        }

        void requireUsable(ClaimTable table) {
            if (!kind.equals("r") && !kind.equals("p")) {
                throw unfit("%s is not a table; claims need one of their own.".formatted(table));
            }
            if (persistence.equals("u")) {
                throw UnfitTableException.unlogged(table, table.quotedName(), "every message could be applied again");
            }
            if (!mayInsert || !maySelect) {
                throw unfit("Role %s may not write claims. Allow it: GRANT SELECT, INSERT ON %s TO %s;"
                        .formatted(role, table.quotedName(), new Identifier(role).quoted()));
            }
        }
    }

    private record Column(String name, String type, int modifier, boolean needsValue, boolean isFilled) {
        static Column read(Row row) {
            return new Column(
                    value(row, "name", String.class),
                    value(row, "type", String.class),
                    value(row, "modifier", Integer.class),
                    value(row, "needs_value", Boolean.class),
                    value(row, "is_filled", Boolean.class));
        }

        /** In characters. */
        int length() {
            return type.equals("character varying") && modifier > 0 ? modifier - VARCHAR_HEADER : Integer.MAX_VALUE;
        }
    }

    private static <V> V value(Row row, String column, Class<V> type) {
        return Objects.requireNonNull(row.get(column, type), column);
    }
}
