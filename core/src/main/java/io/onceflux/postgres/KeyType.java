package io.onceflux.postgres;

import java.util.UUID;

/** The types that a key column may have, and how an id is written so that it comes back the same. */
enum KeyType {
    TEXT("text") {
        @Override
        String canonical(String id) {
            return id;
        }
    },
    UUID_TYPE("uuid") {
        @Override
        String canonical(String id) {
            try {
                String canonical = UUID.fromString(id).toString();
                if (canonical.equalsIgnoreCase(id)) { // It also takes groups of other lengths, and cuts them.
                    return canonical;
                }
            } catch (IllegalArgumentException e) {
                // said below
            }
            throw new UnstorableIdException(
                    "the message id is no UUID, but the claim table's key column is of type uuid");
        }
    };

    private final String sqlName;

    KeyType(String sqlName) {
        this.sqlName = sqlName;
    }

    /** The type to cast to. Never with a length: a cast to {@code varchar(n)} would cut the id without an error. */
    String sqlName() {
        return sqlName;
    }

    abstract String canonical(String id);
}
