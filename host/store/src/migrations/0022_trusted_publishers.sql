-- Workflows of build services that may publish without a stored secret. `claims` is a JSON object
-- of the required claims of an ID token, `packages` is a JSON list of patterns, `scope` is that of
-- a token. `owner_id` is the id of the owner of the workflow's repository, once it is known.
CREATE TABLE trusted_publishers (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations ON DELETE CASCADE,
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, provider TEXT NOT NULL, issuer TEXT NOT NULL, claims TEXT NOT NULL,
    packages TEXT NOT NULL, scope BIGINT NOT NULL, owner_id TEXT, created_by TEXT NOT NULL, created_at BIGINT NOT NULL, last_used_at BIGINT
);
CREATE INDEX trusted_publishers_by_issuer ON trusted_publishers (organization, issuer, id);
CREATE INDEX trusted_publishers_by_repository ON trusted_publishers (repository, id);

-- Tokens that were issued for a publisher, or for an ID token itself. They are revoked with it.
-- `grants` is a JSON list of the grants of such a token.
ALTER TABLE tokens ADD COLUMN grants TEXT;
CREATE INDEX tokens_granted ON tokens (expires_at) WHERE grants IS NOT NULL;
CREATE TABLE publisher_tokens (
    publisher BIGINT NOT NULL REFERENCES trusted_publishers ON DELETE CASCADE, token BIGINT NOT NULL REFERENCES tokens ON DELETE CASCADE,
    PRIMARY KEY (publisher, token)
){without_rowid};
CREATE INDEX publisher_tokens_by_token ON publisher_tokens (token);

-- Exchanged ID tokens, by the hash of issuer and identifier, until they expire (ms since 1970). So
-- none is exchanged twice.
CREATE TABLE spent_id_tokens (id_sha256 {blob} NOT NULL PRIMARY KEY, expires_at BIGINT NOT NULL){without_rowid};
CREATE INDEX spent_id_tokens_by_end ON spent_id_tokens (expires_at);
