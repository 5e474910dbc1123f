package io.onceflux;

import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Finds SQL that would end the transaction under which it runs.
 *
 * <p>It must not get to the server: after a COMMIT the claim stands and what is left of the effect would be taken for a
 * duplicate, and after {@code ROLLBACK AND CHAIN} an empty transaction would commit as if it were the effect's.
 */
final class TransactionControl {

    private static final Set<String> ENDING = Set.of("BEGIN", "START", "COMMIT", "END", "ABORT");

    /** Back to a savepoint, which the effect may. */
    private static final Pattern TO_SAVEPOINT =
            Pattern.compile("ROLLBACK\\s+((WORK|TRANSACTION)\\s+)?TO\\b.*", Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

    private static final Pattern TWO_PHASES =
            Pattern.compile("PREPARE\\s+TRANSACTION\\b.*", Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

    private static final Pattern BLANK = Pattern.compile("(?:[\\s;]++|--[^\\n]*+|/\\*.*?\\*/)++", Pattern.DOTALL);

    /** Comments, and text in quotes: a semicolon in them ends nothing. */
    private static final Pattern OPAQUE =
            Pattern.compile("--[^\\n]*+|/\\*.*?\\*/|'[^']*+'|\"[^\"]*+\"|(\\$\\w*+\\$).*?\\1", Pattern.DOTALL);

    private TransactionControl() {}

    /** Throws if one of the statements would begin or end a transaction. */
    static void refuseIn(String sql) {
        refuseAt(sql, 0);
        int semicolon = sql.indexOf(';');
        if (semicolon >= 0 && semicolon < sql.length() - 1) {
            String code = OPAQUE.matcher(sql).replaceAll(" ");
            for (int at = code.indexOf(';'); at >= 0; at = code.indexOf(';', at + 1)) {
                refuseAt(code, at);
            }
        }
    }

    private static void refuseAt(String sql, int from) {
        int start = from;
        if (start < sql.length() && !Character.isLetter(sql.charAt(start))) {
            Matcher blank = BLANK.matcher(sql).region(start, sql.length());
            start = blank.lookingAt() ? blank.end() : start;
        }
        int end = start;
        while (end < sql.length() && Character.isLetter(sql.charAt(end))) {
            end++;
        }
        String word = sql.substring(start, end).toUpperCase(Locale.ROOT);
        boolean ends = ENDING.contains(word)
                || (word.equals("ROLLBACK")
                        && !TO_SAVEPOINT.matcher(sql.substring(start)).matches())
                || (word.equals("PREPARE")
                        && TWO_PHASES.matcher(sql.substring(start)).matches());
        if (ends) {
            throw new IllegalStateException("an effect must not run " + word
                    + " as SQL: its transaction is begun and ended by OnceFlux, together with the claim");
        }
    }
}
