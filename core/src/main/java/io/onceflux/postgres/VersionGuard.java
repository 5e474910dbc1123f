package io.onceflux.postgres;

import static java.util.stream.Collectors.joining;

import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A row that only a newer version may overwrite: for projections of what another service owns, whose changes may arrive in any order and
 * more than once. Immutable.
 *
 * <pre>{@code
 * VersionGuard customers = VersionGuard.of("customers", "customer_id").versionedBy("version").withColumns("name", "tier");
 * db.sql(customers.upsertSql()).bind("customer_id", c.id()).bind("version", c.version()).bind("name", c.name())...
 * }</pre>
 *
 * <p>The statement affects no row where the version that is there is newer or the same; a message that comes again looks the same as one
 * that was overtaken. A stored null is older than any version. A version that is null is written only where there is no row or a null.
 *
 * <p>Names are taken literally, with their case, and are the names of the statement's parameters: letters, digits and underscores.
 */
public final class VersionGuard {

    private static final Pattern PARAMETER = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*");

    private final @Nullable Identifier schema;
    private final Identifier table;
    private final List<Identifier> key;
    private final Identifier version;
    private final List<Identifier> columns;

    private VersionGuard(
            @Nullable Identifier schema,
            Identifier table,
            List<Identifier> key,
            Identifier version,
            List<Identifier> columns) {
        this.schema = schema;
        this.table = table;
        this.key = key;
        this.version = version;
        this.columns = columns;
    }

    /**
     * The rows of a table, with the version in the column {@code version} until told otherwise.
     *
     * @param table its name; the connection's search path finds it
     * @param key the columns that identify a row; they have a unique constraint
     */
    public static VersionGuard of(String table, String... key) {
        if (key.length == 0) {
            throw new IllegalArgumentException("a row is identified by at least one column");
        }
        return new VersionGuard(null, new Identifier(table), parameters(key), new Identifier("version"), List.of());
    }

    private static List<Identifier> parameters(String... names) {
        return Arrays.stream(names).map(VersionGuard::parameter).toList();
    }

    private static Identifier parameter(String name) {
        Identifier column = new Identifier(name);
        if (!PARAMETER.matcher(name).matches()) {
            throw new IllegalArgumentException(
                    "column '%s' cannot be a parameter of the same name: write the statement yourself".formatted(name));
        }
        return column;
    }

    /** This guard for a table in a schema. */
    public VersionGuard inSchema(String name) {
        return new VersionGuard(new Identifier(name), table, key, version, columns);
    }

    /** This guard with another column for the version: of a type with an order, such as bigint. */
    public VersionGuard versionedBy(String column) {
        return new VersionGuard(schema, table, key, parameter(column), columns);
    }

    /** This guard with these other columns, which a newer version writes. */
    public VersionGuard withColumns(String... names) {
        return new VersionGuard(schema, table, key, version, parameters(names));
    }

    /** The statement, with a named parameter for each column, named as it is. */
    public String upsertSql() {
        List<Identifier> written =
                Stream.concat(Stream.of(version), columns.stream()).toList();
        List<Identifier> all = Stream.concat(key.stream(), written.stream()).toList();
        return """
                INSERT INTO %s AS stored (%s) VALUES (%s)
                ON CONFLICT (%s) DO UPDATE SET %s
                WHERE stored.%s IS NULL OR stored.%s < EXCLUDED.%s""".formatted(
                        schema == null ? table.quoted() : schema.quoted() + "." + table.quoted(),
                        Identifier.quotedList(all),
                        all.stream().map(column -> ":" + column).collect(joining(", ")),
                        Identifier.quotedList(key),
                        written.stream()
                                .map(column -> column.quoted() + " = EXCLUDED." + column.quoted())
                                .collect(joining(", ")),
                        version.quoted(),
                        version.quoted(),
                        version.quoted());
    }

    /** What the statement relies on, to be looked at before the first message. */
    public UniqueKey key() {
        UniqueKey unique =
                UniqueKey.of(table.name(), key.stream().map(Identifier::name).toArray(String[]::new));
        return schema == null ? unique : unique.inSchema(schema.name());
    }

    /**
     * An instant as a version in a column of type timestamptz.
     *
     * @throws IllegalArgumentException if it is finer than a microsecond: PostgreSQL rounds it, and of two versions that differ by less
     *     the newer would be lost. Keep such a version as a bigint of nanoseconds
     */
    public static OffsetDateTime version(Instant instant) {
        if (!instant.equals(instant.truncatedTo(ChronoUnit.MICROS))) {
            throw new IllegalArgumentException(
                    ("the version %s is finer than a microsecond, which timestamptz does not hold: keep it as a bigint of"
                                    + " nanoseconds")
                            .formatted(instant));
        }
        return instant.atOffset(ZoneOffset.UTC);
    }
}
