-- A sign-in is offered for any name, so that the offer does not reveal which repositories exist.
-- `repository` is null if there is none, or none with such sign-ins. Sign-ins live for minutes, so
-- those that are open now must be begun again.
DROP TABLE logins;
CREATE TABLE logins (
    poll_sha256 {blob} PRIMARY KEY, page_sha256 {blob} NOT NULL UNIQUE, organization BIGINT NOT NULL REFERENCES organizations,
    repository BIGINT REFERENCES repositories ON DELETE CASCADE, name TEXT NOT NULL, address TEXT NOT NULL, token BIGINT, sealed TEXT,
    created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL
);
CREATE INDEX logins_by_repository ON logins (repository);
CREATE INDEX logins_by_organization ON logins (organization, address);
CREATE INDEX logins_by_end ON logins (expires_at);
