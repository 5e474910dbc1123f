package io.onceflux;

import java.util.List;
import java.util.Set;

/**
 * Finds SQL that would end the transaction under which it runs.
 *
 * <p>It must not get to the server: after a COMMIT the claim stands and what is left of the effect would be taken for a
 * duplicate, and after {@code ROLLBACK AND CHAIN} an empty transaction would commit as if it were the effect's.
 */
final class TransactionControl {

    private static final Set<String> ENDING = Set.of("BEGIN", "START", "COMMIT", "END", "ABORT");

    private static final List<String> USUAL = List.of("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH ", "MERGE ");

    private static final Set<String> NOISE = Set.of("WORK", "TRANSACTION");

    /** As many as it takes to tell {@code ROLLBACK TRANSACTION TO} from {@code ROLLBACK}. */
    private static final int WORDS = 3;

    private TransactionControl() {}

    /** Throws if one of the statements would begin or end a transaction. */
    static void refuseIn(String sql) {
        if (isUsual(sql)) {
            return;
        }
        SqlText text = new SqlText(sql);
        do {
            refuse(text.leadingWords(WORDS));
        } while (text.skipToNextStatement());
    }

    /** One statement that begins with a word that ends nothing: this is asked for every statement of every effect. */
    private static boolean isUsual(String sql) {
        for (String word : USUAL) {
            if (sql.regionMatches(true, 0, word, 0, word.length())) {
                return sql.indexOf(';') < 0;
            }
        }
        return false;
    }

    private static void refuse(List<String> words) {
        String first = wordAt(words, 0);
        boolean ends = switch (first) {
            case "ROLLBACK" -> !isToSavepoint(words);
            case "PREPARE" -> wordAt(words, 1).equals("TRANSACTION");
            default -> ENDING.contains(first);
        };
        if (ends) {
            throw new IllegalStateException("an effect must not run " + first
                    + " as SQL: its transaction is begun and ended by OnceFlux, together with the claim");
        }
    }

    /** Back to a savepoint, which an effect may. */
    private static boolean isToSavepoint(List<String> words) {
        String next = wordAt(words, 1);
        return (NOISE.contains(next) ? wordAt(words, 2) : next).equals("TO");
    }

    private static String wordAt(List<String> words, int index) {
        return index < words.size() ? words.get(index) : "";
    }
}
