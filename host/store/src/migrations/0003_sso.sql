-- Identities of members at a sign-in provider. A member has one identity at a provider, and an
-- identity belongs to one member.
CREATE TABLE sso_identities (
    organization BIGINT NOT NULL REFERENCES organizations, issuer TEXT NOT NULL, subject TEXT NOT NULL,
    member BIGINT NOT NULL REFERENCES members ON DELETE CASCADE, created_at BIGINT NOT NULL,
    PRIMARY KEY (organization, issuer, subject), UNIQUE (member, issuer)
);

-- Completed sign-ins, by SHA-256 of their state, until they would have expired. So no sign-in
-- counts twice.
CREATE TABLE sso_spent (state_sha256 {blob} PRIMARY KEY, expires_at BIGINT NOT NULL);
CREATE INDEX sso_spent_by_end ON sso_spent (expires_at);
