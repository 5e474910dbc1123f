package io.onceflux;

import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.R2dbcRollbackException;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What a SQLSTATE says about a failure. Message texts are never looked at: they depend on the server's language. */
final class SqlStates {

    static final String LOCK_NOT_AVAILABLE = "55P03";

    /** feature_not_supported: "cached plan must not change result type", once a connection; but also what is never supported. */
    static final String STALE_PLAN = "0A000";

    static final String NOT_UNIQUE = "23505";

    /** invalid_column_reference: ON CONFLICT without its unique index. */
    static final String NO_UNIQUE_INDEX = "42P10";

    private static final Set<String> CONFLICTS = Set.of(
            "40001", // serialization_failure
            "40P01", // deadlock_detected
            LOCK_NOT_AVAILABLE,
            STALE_PLAN);

    private static final Set<String> CONFLICTS_UNDER_SNAPSHOT = Set.of(NOT_UNIQUE, "23P01");

    private static final Set<String> INFRASTRUCTURE = Set.of(
            "25006", // read_only_sql_transaction: a failover left us on a standby
            "57014", // query_canceled, not by us: our own time limit is another exception
            "57P01", // admin_shutdown
            "57P02", // crash_shutdown
            "57P03", // cannot_connect_now
            "57P05"); // idle_session_timeout

    private static final String TRANSACTION_ROLLBACK = "40";

    private static final Set<String> SERVERS_OWN = Set.of(
            "53100", // disk_full: a write somewhere else may succeed meanwhile
            "57P01", "57P02", "57P03");

    private static final Set<String> INFRASTRUCTURE_CLASSES = Set.of("08", "28", "53", "58");

    private static final Set<String> BROKEN_SETUP = Set.of(
            "42P01", // undefined_table
            "42703", // undefined_column
            "42501", // insufficient_privilege
            "42704", // undefined_object, such as a type
            "42804", // datatype_mismatch: a column has another type than the statement expects
            "42883", // undefined_function; also an operator that does not exist for these types
            NO_UNIQUE_INDEX,
            "3F000"); // invalid_schema_name

    private static final Set<String> PERMANENT_CLASSES = Set.of("22", "23", "42");

    private SqlStates() {}

    static @Nullable FailureKind kindOf(R2dbcException error) {
        String state = error.getSqlState();
        if (state == null || state.length() != 5) {
            return null;
        }
        if (isFullRequestQueue(error)) {
            return FailureKind.EFFECT;
        }
        if (CONFLICTS.contains(state)) {
            return FailureKind.CONFLICT;
        }
        if (INFRASTRUCTURE.contains(state) || INFRASTRUCTURE_CLASSES.contains(classOf(state))) {
            return FailureKind.INFRASTRUCTURE;
        }
        if (BROKEN_SETUP.contains(state)) {
            return FailureKind.BROKEN_SETUP;
        }
        return PERMANENT_CLASSES.contains(classOf(state)) ? FailureKind.PERMANENT : null;
    }

    /**
     * Whether the state may only mean that two transactions met, where transactions see a snapshot: the row that it collides
     * with is not visible to the transaction that gets the error.
     */
    static boolean mayBeConflictUnderSnapshot(@Nullable String state) {
        return state != null && CONFLICTS_UNDER_SNAPSHOT.contains(state);
    }

    /** Whether the server's answer to COMMIT says for certain that nothing was committed. */
    static boolean isDefiniteAnswer(@Nullable String state) {
        return state != null
                && !classOf(state).equals("08")
                && !classOf(state).equals("57")
                && !classOf(state).equals("58")
                && !classOf(state).equals("XX");
    }

    /** Whether COMMIT was answered with ROLLBACK: a statement had failed, and nobody heeded it. No SQLSTATE comes with that. */
    static boolean isRolledBackForASwallowedError(Throwable error) {
        R2dbcRollbackException rollback = Causes.find(error, R2dbcRollbackException.class);
        String state = rollback == null ? null : rollback.getSqlState();
        return rollback != null && (state == null || !classOf(state).equals(TRANSACTION_ROLLBACK));
    }

    /** Whether the server says that it, or this session of it, was told to end, or has no room: it is not the statement's fault. */
    static boolean isServersOwn(@Nullable String state) {
        return state != null && SERVERS_OWN.contains(state);
    }

    static boolean isRefusedLogin(@Nullable String state) {
        return state != null && (classOf(state).equals("28") || state.equals("3D000"));
    }

    /** The SQLSTATE in a chain of causes. */
    static @Nullable String stateOf(Throwable error) {
        R2dbcException found = Causes.find(error, R2dbcException.class);
        return found == null ? null : found.getSqlState();
    }

    /**
     * The driver reports a query per streamed row (its request queue of 256 is full) as 08006, like a lost connection; it is
     * the effect's fault. The class is not public, so its name has to do.
     */
    private static boolean isFullRequestQueue(R2dbcException error) {
        return error.getClass().getSimpleName().equals("RequestQueueException");
    }

    private static String classOf(String state) {
        return state.substring(0, 2);
    }
}
