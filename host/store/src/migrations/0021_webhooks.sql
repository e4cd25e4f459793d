-- Addresses that are told of events. `events` is a JSON list of their names, `repositories` a JSON list of ids, or null for all; `secret` is
-- sealed. `full_at`: since when its queue is full and takes nothing more. One that is deleted goes for good once its deliveries are gone.
-- `claim` is the number of who delivers to it, until `claimed_until`.
CREATE TABLE webhooks (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations ON DELETE CASCADE, url TEXT NOT NULL,
    events TEXT NOT NULL, repositories TEXT NOT NULL, secret TEXT NOT NULL, state TEXT NOT NULL, paused_at BIGINT, paused_because TEXT,
    created_by TEXT NOT NULL, created_at BIGINT NOT NULL, full_at BIGINT, deleted_at BIGINT, claim BIGINT NOT NULL,
    claimed_until BIGINT NOT NULL
);
CREATE INDEX webhooks_by_organization ON webhooks (organization);

-- What one of them is told: an event, written in the transaction of what it tells. `queue` is 1 as long as it waits for its turn, 2 when
-- somebody asked for one try of its own, and null when it is done; those of one `lane` go out one after the other, by `place`. `since` is
-- when it was first tried in vain.
CREATE TABLE webhook_deliveries (
    id {integer_primary_key}, hook BIGINT NOT NULL REFERENCES webhooks ON DELETE CASCADE, event BIGINT NOT NULL, kind TEXT NOT NULL,
    subject TEXT NOT NULL, at BIGINT NOT NULL, data TEXT NOT NULL, lane BIGINT NOT NULL, place BIGINT NOT NULL, queue BIGINT,
    delivered BIGINT NOT NULL, due_at BIGINT NOT NULL, since BIGINT, failures BIGINT NOT NULL, tries BIGINT NOT NULL
);
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (hook, queue, lane, place, id) WHERE queue IS NOT NULL;
CREATE INDEX webhook_deliveries_of ON webhook_deliveries (hook, id);

-- Each try of a delivery: the status and the beginning of the answer, or why there was none.
CREATE TABLE webhook_tries (
    delivery BIGINT NOT NULL REFERENCES webhook_deliveries ON DELETE CASCADE, number BIGINT NOT NULL, at BIGINT NOT NULL, status BIGINT,
    answer TEXT, error TEXT, PRIMARY KEY (delivery, number)
){without_rowid};
