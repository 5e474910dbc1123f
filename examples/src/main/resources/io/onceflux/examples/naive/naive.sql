CREATE TABLE naive_balances (
    customer_id text PRIMARY KEY,
    points bigint NOT NULL DEFAULT 0
);

CREATE TABLE naive_point_ledger (
    entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id text NOT NULL,
    customer_id text NOT NULL REFERENCES naive_balances,
    points bigint NOT NULL,
    credited_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX ON naive_point_ledger (order_id);
