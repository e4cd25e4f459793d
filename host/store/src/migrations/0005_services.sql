-- Keys that sign what repositories hold, one for each format and organization. `public_key` is SubjectPublicKeyInfo in base64,
-- `sealed` the secret half.
CREATE TABLE signing_keys (
    organization BIGINT NOT NULL REFERENCES organizations, format TEXT NOT NULL, id TEXT NOT NULL, public_key TEXT NOT NULL,
    sealed TEXT NOT NULL, created_at BIGINT NOT NULL, PRIMARY KEY (organization, format)
);

-- Sign-ins that clients have begun and people finish at a page of the API host. What the client asks with and what the page is
-- opened with are two secrets, of which neither tells the other. `token` is the one that was made, `sealed` its secret until the
-- client has fetched it.
CREATE TABLE logins (
    poll_sha256 {blob} PRIMARY KEY, page_sha256 {blob} NOT NULL UNIQUE, organization BIGINT NOT NULL REFERENCES organizations,
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, address TEXT NOT NULL, token BIGINT, sealed TEXT,
    created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL
);
CREATE INDEX logins_by_repository ON logins (repository);
CREATE INDEX logins_by_organization ON logins (organization, address);
CREATE INDEX logins_by_end ON logins (expires_at);
