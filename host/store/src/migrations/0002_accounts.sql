-- Invitations, password resets, and the access keys of subscribers and of groups of them.

-- Invitations of a member are deleted with the member.
CREATE TABLE invitations (
    secret_sha256 {blob} PRIMARY KEY, organization BIGINT NOT NULL REFERENCES organizations, email TEXT NOT NULL,
    permissions TEXT NOT NULL, invited_by BIGINT NOT NULL REFERENCES members ON DELETE CASCADE, expires_at BIGINT NOT NULL
);
CREATE INDEX invitations_by_member ON invitations (invited_by);
CREATE INDEX invitations_by_end ON invitations (expires_at);

CREATE TABLE password_resets (
    secret_sha256 {blob} PRIMARY KEY, member BIGINT NOT NULL REFERENCES members ON DELETE CASCADE, expires_at BIGINT NOT NULL
);
CREATE INDEX password_resets_by_member ON password_resets (member);
CREATE INDEX password_resets_by_end ON password_resets (expires_at);

-- Owners of access keys. `kind` is `subscriber`, or `subscriber_group` for a group of them, which
-- has no e-mail address.
CREATE TABLE key_owners (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations, kind TEXT NOT NULL, name TEXT NOT NULL, email TEXT,
    created_at BIGINT NOT NULL
);
CREATE INDEX key_owners_by_kind ON key_owners (organization, kind, id);

CREATE TABLE key_owner_repositories (
    owner BIGINT NOT NULL REFERENCES key_owners ON DELETE CASCADE,
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, PRIMARY KEY (owner, repository)
){without_rowid};
CREATE INDEX key_owner_repositories_by_repository ON key_owner_repositories (repository);

CREATE TABLE subscriber_groups (
    subscriber BIGINT NOT NULL REFERENCES key_owners ON DELETE CASCADE,
    subscriber_group BIGINT NOT NULL REFERENCES key_owners ON DELETE CASCADE, PRIMARY KEY (subscriber, subscriber_group)
){without_rowid};
CREATE INDEX subscriber_groups_by_group ON subscriber_groups (subscriber_group);

CREATE TABLE access_keys (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations, secret_sha256 {blob} NOT NULL UNIQUE, name TEXT,
    owner BIGINT NOT NULL REFERENCES key_owners ON DELETE CASCADE, created_by TEXT NOT NULL, expires_at BIGINT,
    ends_at BIGINT, revoked_at BIGINT, created_at BIGINT NOT NULL, last_used_at BIGINT
);
CREATE INDEX access_keys_by_owner ON access_keys (owner, id);
