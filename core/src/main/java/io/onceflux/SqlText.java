package io.onceflux;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * Reads SQL from statement to statement, as PostgreSQL splits it: a semicolon in a comment or in quotes ends nothing, comments
 * nest, and a dollar within an identifier quotes nothing.
 *
 * @see <a href="https://www.postgresql.org/docs/current/sql-syntax-lexical.html">PostgreSQL, Lexical Structure</a>
 */
final class SqlText {

    private static final Set<String> PLAIN_WRITES = Set.of("INSERT", "UPDATE", "DELETE", "MERGE");

    private final String sql;
    private int at;

    SqlText(String sql) {
        this.sql = sql;
    }

    /** Whether this is one statement that writes rows of one table, and nothing where it affects none; but for what triggers do. */
    boolean isPlainWrite() {
        List<String> words = leadingWords(1);
        return !words.isEmpty() && PLAIN_WRITES.contains(words.get(0)) && (!skipToNextStatement() || isAtEnd());
    }

    /** Whether nothing but blanks and comments is left. */
    private boolean isAtEnd() {
        skipBlanks();
        return at == sql.length();
    }

    /** The words that the statement here begins with, in upper case; fewer if something else than a word comes before. */
    List<String> leadingWords(int most) {
        List<String> words = new ArrayList<>(most);
        while (words.size() < most) {
            skipBlanks();
            int start = at;
            if (at == sql.length() || sql.charAt(at) == '$') {
                break;
            }
            while (at < sql.length() && isPartOfWord(sql.charAt(at))) {
                at++;
            }
            if (at == start) {
                break;
            }
            words.add(sql.substring(start, at).toUpperCase(Locale.ROOT));
        }
        return words;
    }

    /** Goes on behind the next semicolon that ends a statement; false if there is none. */
    boolean skipToNextStatement() {
        if (sql.indexOf(';', at) < 0) {
            return false;
        }
        while (at < sql.length()) {
            char c = sql.charAt(at);
            if (c == ';') {
                at++;
                return true;
            }
            if (c == '\'' || c == '"') {
                skipQuoted(c, c == '\'' && isEscapeString());
            } else if (c == '$' && !follows(at, SqlText::isPartOfWord)) {
                skipDollarQuoted();
            } else if (!skipComment()) {
                at++;
            }
        }
        return false;
    }

    private void skipBlanks() {
        while (at < sql.length()) {
            if (Character.isWhitespace(sql.charAt(at))) {
                at++;
            } else if (!skipComment()) {
                return;
            }
        }
    }

    private boolean skipComment() {
        if (sql.startsWith("--", at)) {
            while (at < sql.length() && sql.charAt(at) != '\n' && sql.charAt(at) != '\r') {
                at++;
            }
            return true;
        }
        if (!sql.startsWith("/*", at)) {
            return false;
        }
        int depth = 0;
        do {
            if (sql.startsWith("/*", at)) {
                depth++;
                at += 2;
            } else if (sql.startsWith("*/", at)) {
                depth--;
                at += 2;
            } else {
                at++;
            }
        } while (depth > 0 && at < sql.length());
        return true;
    }

    /** To the end of a quoted text, of which a doubled quote and the next line's text are a part. */
    private void skipQuoted(char quote, boolean withEscapes) {
        do {
            at++;
            while (at < sql.length() && sql.charAt(at) != quote) {
                at += withEscapes && sql.charAt(at) == '\\' ? 2 : 1;
            }
            at = Math.min(at + 1, sql.length());
            skipBlanks();
        } while (at < sql.length() && sql.charAt(at) == quote);
    }

    /** Whether the quote here opens {@code E'...'}, in which a backslash escapes a quote. */
    private boolean isEscapeString() {
        return follows(at, c -> c == 'e' || c == 'E') && !follows(at - 1, SqlText::isPartOfWord);
    }

    private void skipDollarQuoted() {
        int tagEnd = at + 1;
        while (tagEnd < sql.length() && sql.charAt(tagEnd) != '$' && isPartOfWord(sql.charAt(tagEnd))) {
            tagEnd++;
        }
        boolean isTag = tagEnd < sql.length() && sql.charAt(tagEnd) == '$' && !Character.isDigit(sql.charAt(at + 1));
        if (!isTag) { // A parameter, such as $1.
            at++;
            return;
        }
        String tag = sql.substring(at, tagEnd + 1);
        int end = sql.indexOf(tag, tagEnd + 1);
        at = end < 0 ? sql.length() : end + tag.length();
    }

    private boolean follows(int position, Chars chars) {
        return position > 0 && chars.contain(sql.charAt(position - 1));
    }

    private static boolean isPartOfWord(char c) {
        return Character.isLetterOrDigit(c) || c == '_' || c == '$' || c >= 0x80;
    }

    @FunctionalInterface
    private interface Chars {
        boolean contain(char c);
    }
}
