-- Rules over versions, each with a policy's component: a name beside the program, or a digest below. `repositories` is a JSON list of
-- identifiers, null for all; `packages` one of patterns, null for all; `mode` is `paused`, `warn` or `enforced`; `digest` SHA-256 of what
-- the rule says, `previewed` of what somebody saw the preview of last.
CREATE TABLE policy_rules (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations, name TEXT NOT NULL, component TEXT NOT NULL,
    settings TEXT NOT NULL, repositories TEXT, packages TEXT, mode TEXT NOT NULL, digest TEXT NOT NULL, previewed TEXT,
    created_by TEXT NOT NULL, created_at BIGINT NOT NULL
);
CREATE INDEX policy_rules_by_organization ON policy_rules (organization, id);

-- What passes a rule nevertheless, until when (ms since 1970): package and version are patterns.
CREATE TABLE policy_exceptions (
    id {integer_primary_key}, rule BIGINT NOT NULL REFERENCES policy_rules ON DELETE CASCADE, repository BIGINT, package TEXT NOT NULL,
    version TEXT NOT NULL, reason TEXT NOT NULL, until BIGINT NOT NULL, created_by TEXT NOT NULL, created_at BIGINT NOT NULL
);
CREATE INDEX policy_exceptions_by_rule ON policy_exceptions (rule, id);

-- Components of policies by digest (`sha256:` and hex), as those of formats.
CREATE TABLE policy_components (
    digest {text_collate_c} NOT NULL PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL, told TEXT NOT NULL, size BIGINT NOT NULL,
    installed_by TEXT NOT NULL, installed_at BIGINT NOT NULL
){without_rowid};
CREATE TABLE policy_pieces (
    digest {text_collate_c} NOT NULL REFERENCES policy_components ON DELETE CASCADE, number BIGINT NOT NULL, bytes {blob} NOT NULL,
    PRIMARY KEY (digest, number)
);

-- Another number with each change of the rules that are not paused, or of their exceptions; null where there are none.
ALTER TABLE organizations ADD COLUMN policies BIGINT;
