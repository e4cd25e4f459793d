-- Rules about versions, each with a policy component: a name beside the program, or a digest below.
-- `repositories` is a JSON list of ids, `packages` is one of patterns, both null for all. `mode` is
-- `paused`, `warn` or `enforced`. `digest` is SHA-256 of the content, `previewed` is the digest of
-- the content that was previewed last.
CREATE TABLE policy_rules (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations, name TEXT NOT NULL, component TEXT NOT NULL,
    settings TEXT NOT NULL, repositories TEXT, packages TEXT, mode TEXT NOT NULL, digest TEXT NOT NULL, previewed TEXT,
    created_by TEXT NOT NULL, created_at BIGINT NOT NULL
);
CREATE INDEX policy_rules_by_organization ON policy_rules (organization, id);

-- Exceptions from a rule, with their end (ms since 1970). Package and version are patterns.
CREATE TABLE policy_exceptions (
    id {integer_primary_key}, rule BIGINT NOT NULL REFERENCES policy_rules ON DELETE CASCADE, repository BIGINT, package TEXT NOT NULL,
    version TEXT NOT NULL, reason TEXT NOT NULL, until BIGINT NOT NULL, created_by TEXT NOT NULL, created_at BIGINT NOT NULL
);
CREATE INDEX policy_exceptions_by_rule ON policy_exceptions (rule, id);

-- Policy components by digest (`sha256:` and hex), like those of formats.
CREATE TABLE policy_components (
    digest {text_collate_c} NOT NULL PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL, told TEXT NOT NULL, size BIGINT NOT NULL,
    installed_by TEXT NOT NULL, installed_at BIGINT NOT NULL
){without_rowid};
CREATE TABLE policy_pieces (
    digest {text_collate_c} NOT NULL REFERENCES policy_components ON DELETE CASCADE, number BIGINT NOT NULL, bytes {blob} NOT NULL,
    PRIMARY KEY (digest, number)
);

-- A new number with each change of the rules that are not paused, or of their exceptions. Null if
-- there are none.
ALTER TABLE organizations ADD COLUMN policies BIGINT;
