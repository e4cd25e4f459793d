-- Workflows of build services that may publish without a kept secret. `claims` is a JSON object of what an ID token must say, `packages` a
-- JSON list of patterns, `scope` as of a token; `owner_id` is the number of who owns the workflow's repository, from when it is known.
CREATE TABLE trusted_publishers (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations ON DELETE CASCADE,
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, provider TEXT NOT NULL, issuer TEXT NOT NULL, claims TEXT NOT NULL,
    packages TEXT NOT NULL, scope BIGINT NOT NULL, owner_id TEXT, created_by TEXT NOT NULL, created_at BIGINT NOT NULL, last_used_at BIGINT
);
CREATE INDEX trusted_publishers_by_issuer ON trusted_publishers (organization, issuer, id);
CREATE INDEX trusted_publishers_by_repository ON trusted_publishers (repository, id);

-- Tokens that were given out for one, or for an ID token itself: they end with it. `grants` is a JSON list of what such a token reaches.
ALTER TABLE tokens ADD COLUMN grants TEXT;
CREATE INDEX tokens_granted ON tokens (expires_at) WHERE grants IS NOT NULL;
CREATE TABLE publisher_tokens (
    publisher BIGINT NOT NULL REFERENCES trusted_publishers ON DELETE CASCADE, token BIGINT NOT NULL REFERENCES tokens ON DELETE CASCADE,
    PRIMARY KEY (publisher, token)
){without_rowid};
CREATE INDEX publisher_tokens_by_token ON publisher_tokens (token);

-- ID tokens that were exchanged, by the hash of issuer and identifier, until they expire (ms since 1970): none is exchanged twice.
CREATE TABLE spent_id_tokens (id_sha256 {blob} NOT NULL PRIMARY KEY, expires_at BIGINT NOT NULL){without_rowid};
CREATE INDEX spent_id_tokens_by_end ON spent_id_tokens (expires_at);
