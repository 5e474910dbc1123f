CREATE TABLE IF NOT EXISTS "processed_messages" (
    "consumer" text COLLATE "C" NOT NULL,
    "message_key" text COLLATE "C" NOT NULL,
    "processed_at" timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY ("consumer", "message_key")
);
