package io.onceflux.micrometer;

import io.r2dbc.spi.R2dbcException;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The class of an error's SQLSTATE, as a tag: an effect may raise any five characters, and a tag must not take any value. */
final class SqlStateClass {

    static final String NONE = "none";

    /** Appendix A of PostgreSQL's manual. */
    private static final Set<String> OF_POSTGRESQL = Set.of(
            "01", "02", "03", "08", "09", "0A", "0B", "0F", "0L", "0P", "0Z", "20", "21", "22", "23", "24", "25", "26",
            "27", "28", "2B", "2D", "2F", "34", "38", "39", "3B", "3D", "3F", "40", "42", "44", "53", "54", "55", "57",
            "58", "72", "F0", "HV", "P0", "XX");

    private static final int DEEPEST = 50;

    private SqlStateClass() {}

    static String of(Throwable error) {
        String state = stateOf(error);
        if (state == null || state.length() != 5) {
            return NONE;
        }
        String ofState = state.substring(0, 2);
        return OF_POSTGRESQL.contains(ofState) ? ofState : "other";
    }

    private static @Nullable String stateOf(Throwable error) {
        Throwable at = error;
        for (int depth = 0; at != null && depth < DEEPEST; depth++, at = at.getCause()) {
            if (at instanceof R2dbcException fromDatabase) {
                return fromDatabase.getSqlState();
            }
        }
        return null;
    }
}
