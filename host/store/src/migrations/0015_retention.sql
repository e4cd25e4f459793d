-- Policies of retention. `rule` is a JSON object of what it says, `digest` SHA-256 of that in hex, `previewed` the digest of the rule that
-- somebody saw the preview of last. An enforced one runs when it is `due_at`; whoever runs it is `holder`, until `claimed_until`.
CREATE TABLE retention_policies (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations, name TEXT NOT NULL, rule TEXT NOT NULL,
    digest TEXT NOT NULL, previewed TEXT, mode TEXT NOT NULL, created_by TEXT NOT NULL, created_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL, holder BIGINT, claimed_until BIGINT NOT NULL
);
CREATE INDEX retention_policies_by_organization ON retention_policies (organization, id);
CREATE INDEX retention_policies_due ON retention_policies (due_at) WHERE mode = 'enforced';

-- What they did: the last of each. `deleted` and `bytes` count what a run has taken on, so that one which is taken up again never deletes
-- more than it may; at its end they are what was deleted. `pending` is a JSON list of what it took on last, `skipped` one of what it left.
CREATE TABLE retention_runs (
    id {integer_primary_key}, policy BIGINT NOT NULL REFERENCES retention_policies ON DELETE CASCADE, digest TEXT NOT NULL,
    started_at BIGINT NOT NULL, ended_at BIGINT, deleted BIGINT NOT NULL, bytes BIGINT NOT NULL, pending TEXT NOT NULL, skipped TEXT NOT NULL,
    error TEXT
);
CREATE INDEX retention_runs_by_policy ON retention_runs (policy, id);
CREATE INDEX retention_runs_open ON retention_runs (policy) WHERE ended_at IS NULL;

-- Of an entry in the trash that was never shown, as a manifest without a tag: its bytes. Null where versions say what it is.
ALTER TABLE trash ADD COLUMN unshown_bytes BIGINT;
