package io.onceflux.postgres;

/** A name of a schema, table or column, checked and quoted: it is taken literally and can hold no SQL. */
record Identifier(String name) {

    /** PostgreSQL cuts longer names without an error, so that they would name something else. */
    private static final int LONGEST_BYTES = 63;

    Identifier {
        if (name.isBlank()) {
            throw new IllegalArgumentException("a table or column name must not be blank");
        }
        if (name.indexOf(0) >= 0) {
            throw new IllegalArgumentException("a table or column name must not contain NUL");
        }
        if (name.getBytes(java.nio.charset.StandardCharsets.UTF_8).length > LONGEST_BYTES) {
            throw new IllegalArgumentException(
                    "the name '%s' is longer than PostgreSQL's %d bytes".formatted(name, LONGEST_BYTES));
        }
    }

    String quoted() {
        return '"' + name.replace("\"", "\"\"") + '"';
    }

    @Override
    public String toString() {
        return name;
    }
}
