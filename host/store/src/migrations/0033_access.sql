-- Access as companies have it: teams, service accounts, API tokens, suspension, second factors, and
-- limits of credentials to packages.

-- `kind` is `person` or `service`. A service account has `service-account:ID` in `email` and an
-- empty password hash, so that nobody signs in with it. `active` is 0 while a member is suspended.
-- `external_id` is the identifier that a SCIM client gave the member.
ALTER TABLE members ADD COLUMN kind TEXT NOT NULL DEFAULT 'person';
ALTER TABLE members ADD COLUMN active BIGINT NOT NULL DEFAULT 1;
ALTER TABLE members ADD COLUMN external_id TEXT;
CREATE INDEX members_by_kind ON members (organization, kind, id);
CREATE INDEX members_by_external_id ON members (organization, external_id) WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX service_accounts_by_name ON members (organization, name) WHERE kind = 'service';

-- `packages` is a JSON list of patterns of the packages that the token may publish and delete. NULL
-- means all.
ALTER TABLE tokens ADD COLUMN packages TEXT;

ALTER TABLE organizations ADD COLUMN require_second_factor BIGINT NOT NULL DEFAULT 0;

-- `external_groups` is a JSON list of the groups of identity providers whose members join at
-- sign-in.
CREATE TABLE teams (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations, name TEXT NOT NULL, description TEXT NOT NULL,
    permissions TEXT NOT NULL, external_groups TEXT NOT NULL, external_id TEXT, created_at BIGINT NOT NULL, UNIQUE (organization, name)
);
CREATE INDEX teams_by_organization ON teams (organization, id);
CREATE INDEX teams_by_external_id ON teams (organization, external_id) WHERE external_id IS NOT NULL;

-- `source` is `manual`, or `external` if an identity provider or a SCIM client made the membership.
CREATE TABLE team_members (
    team BIGINT NOT NULL REFERENCES teams ON DELETE CASCADE, member BIGINT NOT NULL REFERENCES members ON DELETE CASCADE,
    source TEXT NOT NULL, created_at BIGINT NOT NULL, PRIMARY KEY (team, member)
){without_rowid};
CREATE INDEX team_members_by_member ON team_members (member, team);

-- `scopes` and `sensitive` are JSON lists of names.
CREATE TABLE api_tokens (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations,
    owner BIGINT NOT NULL REFERENCES members ON DELETE CASCADE, secret_sha256 {blob} NOT NULL UNIQUE, name TEXT NOT NULL,
    scopes TEXT NOT NULL, sensitive TEXT NOT NULL, created_by TEXT NOT NULL, expires_at BIGINT NOT NULL, ends_at BIGINT,
    revoked_at BIGINT, created_at BIGINT NOT NULL, last_used_at BIGINT
);
CREATE INDEX api_tokens_by_owner ON api_tokens (owner, organization, id);
CREATE INDEX api_tokens_by_organization ON api_tokens (organization, id);

-- Second factors. `secret` is sealed. `last_step` is the time step of the last accepted code.
-- `recovery` is a JSON list of the SHA-256 of each unused recovery code in hex.
CREATE TABLE totp (
    member BIGINT PRIMARY KEY REFERENCES members ON DELETE CASCADE, secret {blob} NOT NULL, confirmed_at BIGINT,
    last_step BIGINT NOT NULL DEFAULT 0, recovery TEXT NOT NULL DEFAULT '[]'
);
