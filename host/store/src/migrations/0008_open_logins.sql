-- A sign-in is offered at any name, so that the offer does not tell which repositories there are: `repository` is null where there
-- was none, or none that signs in so. Sign-ins live for minutes, so those that are open at this moment are begun again.
DROP TABLE logins;
CREATE TABLE logins (
    poll_sha256 {blob} PRIMARY KEY, page_sha256 {blob} NOT NULL UNIQUE, organization BIGINT NOT NULL REFERENCES organizations,
    repository BIGINT REFERENCES repositories ON DELETE CASCADE, name TEXT NOT NULL, address TEXT NOT NULL, token BIGINT, sealed TEXT,
    created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL
);
CREATE INDEX logins_by_repository ON logins (repository);
CREATE INDEX logins_by_organization ON logins (organization, address);
CREATE INDEX logins_by_end ON logins (expires_at);
