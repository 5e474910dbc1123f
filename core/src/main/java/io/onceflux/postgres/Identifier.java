package io.onceflux.postgres;

import java.util.Collection;
import java.util.stream.Collectors;

/** A name of a schema, table or column, checked and quoted: it is taken literally and can hold no SQL. */
record Identifier(String name) {

    /** PostgreSQL cuts longer names without an error, so that they would name something else. */
    private static final int LONGEST_BYTES = 63;

    Identifier {
        if (name == null) {
            throw new IllegalArgumentException("a schema, table or column name must not be null");
        }
        if (name.isBlank()) {
            throw new IllegalArgumentException("a table or column name must not be blank");
        }
        if (name.indexOf(0) >= 0) {
            throw new IllegalArgumentException("a table or column name must not contain NUL");
        }
        if (bytes(name) > LONGEST_BYTES) {
            throw new IllegalArgumentException(
                    "the name '%s' is longer than PostgreSQL's %d bytes".formatted(name, LONGEST_BYTES));
        }
    }

    private static int bytes(String text) {
        return text.getBytes(java.nio.charset.StandardCharsets.UTF_8).length;
    }

    /** This name with an end of ASCII. Where that is too long it is cut, and has a hash, so that names that begin alike stay apart. */
    Identifier with(String end) {
        if (bytes(name + end) <= LONGEST_BYTES) {
            return new Identifier(name + end);
        }
        String hashed = "_%08x%s".formatted(name.hashCode(), end);
        int[] codePoints = name.codePoints().toArray();
        int kept = codePoints.length;
        while (bytes(new String(codePoints, 0, kept) + hashed) > LONGEST_BYTES) {
            kept--;
        }
        return new Identifier(new String(codePoints, 0, kept) + hashed);
    }

    String quoted() {
        return '"' + name.replace("\"", "\"\"") + '"';
    }

    /** As a list of columns in SQL has them. */
    static String quotedList(Collection<Identifier> names) {
        return names.stream().map(Identifier::quoted).collect(Collectors.joining(", "));
    }

    @Override
    public String toString() {
        return name;
    }
}
