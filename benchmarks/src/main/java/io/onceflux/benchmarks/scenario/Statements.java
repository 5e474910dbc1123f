package io.onceflux.benchmarks.scenario;

/** What all variants say to the database, in the form of JDBC; what R2DBC needs otherwise is beside it. */
public final class Statements {

    /** The claim as one writes it by hand. OnceFlux's own does the same, and sets the lock timeout. */
    public static final String CLAIM =
            "INSERT INTO processed_messages (consumer, message_key) VALUES (?, ?) ON CONFLICT DO NOTHING";

    public static final String ADD_TO_BALANCE = "UPDATE balances SET points = points + ? WHERE customer_id = ?";

    public static final String ENTER_IN_LEDGER =
            "INSERT INTO point_ledger (order_id, customer_id, points) VALUES (?, ?, ?)";

    /** Nothing but the primary key is unique: an effect that happens twice shows as a second row. */
    static final String TABLES = """
            CREATE TABLE balances (
                customer_id text PRIMARY KEY,
                points bigint NOT NULL DEFAULT 0
            );
            CREATE TABLE point_ledger (
                entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                order_id text NOT NULL,
                customer_id text NOT NULL,
                points bigint NOT NULL
            );
            """;

    private Statements() {}
}
