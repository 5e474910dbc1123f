CREATE TABLE balances (
    customer_id text PRIMARY KEY,
    points bigint NOT NULL DEFAULT 0
);

-- order_id is not unique on purpose: the claim of the message is what makes a credit happen once, and the demo counts
-- these rows to see whether it did.
CREATE TABLE point_ledger (
    entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id text NOT NULL,
    customer_id text NOT NULL REFERENCES balances,
    points bigint NOT NULL,
    credited_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX ON point_ledger (order_id);
