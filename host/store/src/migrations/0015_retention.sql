-- Retention policies. `rule` is a JSON object, `digest` is its SHA-256 in hex, `previewed` is the
-- digest of the rule that was previewed last. An enforced policy runs when it is `due_at`. `holder`
-- is the server that runs it, until `claimed_until`.
CREATE TABLE retention_policies (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations, name TEXT NOT NULL, rule TEXT NOT NULL,
    digest TEXT NOT NULL, previewed TEXT, mode TEXT NOT NULL, created_by TEXT NOT NULL, created_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL, holder BIGINT, claimed_until BIGINT NOT NULL
);
CREATE INDEX retention_policies_by_organization ON retention_policies (organization, id);
CREATE INDEX retention_policies_due ON retention_policies (due_at) WHERE mode = 'enforced';

-- The last runs of each policy. `deleted` and `bytes` count what a run has started, so that a
-- continued run never deletes more than it may. At the end they are what was deleted. `pending` is
-- a JSON list of what it started last, `skipped` is a list of what it left.
CREATE TABLE retention_runs (
    id {integer_primary_key}, policy BIGINT NOT NULL REFERENCES retention_policies ON DELETE CASCADE, digest TEXT NOT NULL,
    started_at BIGINT NOT NULL, ended_at BIGINT, deleted BIGINT NOT NULL, bytes BIGINT NOT NULL, pending TEXT NOT NULL, skipped TEXT NOT NULL,
    error TEXT
);
CREATE INDEX retention_runs_by_policy ON retention_runs (policy, id);
CREATE INDEX retention_runs_open ON retention_runs (policy) WHERE ended_at IS NULL;

-- Bytes of a trash entry that was never in the catalog, for example a manifest without a tag. Null
-- if the entry has versions.
ALTER TABLE trash ADD COLUMN unshown_bytes BIGINT;
