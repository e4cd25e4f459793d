-- Webhooks. `events` is a JSON list of names, `repositories` is a JSON list of ids, or null for
-- all. `secret` is sealed. `full_at` is the time since which the queue is full and accepts nothing.
-- A deleted webhook is removed once its deliveries are gone. `claim` is the number of the server
-- that delivers to it, until `claimed_until`.
CREATE TABLE webhooks (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations ON DELETE CASCADE, url TEXT NOT NULL,
    events TEXT NOT NULL, repositories TEXT NOT NULL, secret TEXT NOT NULL, state TEXT NOT NULL, paused_at BIGINT, paused_because TEXT,
    created_by TEXT NOT NULL, created_at BIGINT NOT NULL, full_at BIGINT, deleted_at BIGINT, claim BIGINT NOT NULL,
    claimed_until BIGINT NOT NULL
);
CREATE INDEX webhooks_by_organization ON webhooks (organization);

-- Deliveries of events, each written in the transaction of the change. `queue` is 1 while it waits
-- for its turn, 2 if a user requested a single try, and null when it is completed. Deliveries of
-- one `lane` are sent one after the other, ordered by `place`. `since` is the time of the first
-- failed try.
CREATE TABLE webhook_deliveries (
    id {integer_primary_key}, hook BIGINT NOT NULL REFERENCES webhooks ON DELETE CASCADE, event BIGINT NOT NULL, kind TEXT NOT NULL,
    subject TEXT NOT NULL, at BIGINT NOT NULL, data TEXT NOT NULL, lane BIGINT NOT NULL, place BIGINT NOT NULL, queue BIGINT,
    delivered BIGINT NOT NULL, due_at BIGINT NOT NULL, since BIGINT, failures BIGINT NOT NULL, tries BIGINT NOT NULL
);
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (hook, queue, lane, place, id) WHERE queue IS NOT NULL;
CREATE INDEX webhook_deliveries_of ON webhook_deliveries (hook, id);

-- Tries of a delivery: the status and the beginning of the response, or the reason why there was
-- none.
CREATE TABLE webhook_tries (
    delivery BIGINT NOT NULL REFERENCES webhook_deliveries ON DELETE CASCADE, number BIGINT NOT NULL, at BIGINT NOT NULL, status BIGINT,
    answer TEXT, error TEXT, PRIMARY KEY (delivery, number)
){without_rowid};
