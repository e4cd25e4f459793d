-- Keys that sign the content of repositories, one for each format and organization. `public_key` is
-- a SubjectPublicKeyInfo in base64, `sealed` is the secret half.
CREATE TABLE signing_keys (
    organization BIGINT NOT NULL REFERENCES organizations, format TEXT NOT NULL, id TEXT NOT NULL, public_key TEXT NOT NULL,
    sealed TEXT NOT NULL, created_at BIGINT NOT NULL, PRIMARY KEY (organization, format)
);

-- Sign-ins that clients have begun and that people finish on a page of the API host. The client
-- polls with one secret and the page is opened with another, and neither reveals the other. `token`
-- is the created token, `sealed` its secret until the client has fetched it.
CREATE TABLE logins (
    poll_sha256 {blob} PRIMARY KEY, page_sha256 {blob} NOT NULL UNIQUE, organization BIGINT NOT NULL REFERENCES organizations,
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, address TEXT NOT NULL, token BIGINT, sealed TEXT,
    created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL
);
CREATE INDEX logins_by_repository ON logins (repository);
CREATE INDEX logins_by_organization ON logins (organization, address);
CREATE INDEX logins_by_end ON logins (expires_at);
