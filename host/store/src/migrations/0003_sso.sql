-- Sign-in by a provider. Who a member is there: a member has one identity at a provider, and an identity is one member's.
CREATE TABLE sso_identities (
    organization BIGINT NOT NULL REFERENCES organizations, issuer TEXT NOT NULL, subject TEXT NOT NULL,
    member BIGINT NOT NULL REFERENCES members ON DELETE CASCADE, created_at BIGINT NOT NULL,
    PRIMARY KEY (organization, issuer, subject), UNIQUE (member, issuer)
);

-- Sign-ins that came back from the provider, by SHA-256 of their state, until they would have expired: none counts twice.
CREATE TABLE sso_spent (state_sha256 {blob} PRIMARY KEY, expires_at BIGINT NOT NULL);
CREATE INDEX sso_spent_by_end ON sso_spent (expires_at);
