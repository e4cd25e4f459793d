-- The first schema. {integer_primary_key} is a primary key that SQLite uses as the row id, {blob}
-- is the type of bytes, {text_collate_c} is a text in byte order, and {without_rowid} makes SQLite
-- store a table in the order of its key.

CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE organizations (
    id {integer_primary_key}, name TEXT NOT NULL UNIQUE, base_url TEXT, host TEXT UNIQUE, created_at BIGINT NOT NULL
);

CREATE TABLE members (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations, email TEXT NOT NULL, name TEXT NOT NULL,
    password_hash TEXT NOT NULL, permissions TEXT NOT NULL, created_at BIGINT NOT NULL, UNIQUE (organization, email)
);
CREATE INDEX members_by_email ON members (email);

CREATE TABLE sessions (
    secret_sha256 {blob} PRIMARY KEY, organization BIGINT NOT NULL REFERENCES organizations,
    member BIGINT NOT NULL REFERENCES members ON DELETE CASCADE, created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_by_member ON sessions (member);
CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE TABLE confirmations (
    secret_sha256 {blob} PRIMARY KEY, organization BIGINT NOT NULL REFERENCES organizations,
    member BIGINT NOT NULL REFERENCES members ON DELETE CASCADE, action TEXT NOT NULL, expires_at BIGINT NOT NULL
);
CREATE INDEX confirmations_by_member ON confirmations (member);
CREATE INDEX confirmations_by_end ON confirmations (expires_at);

CREATE TABLE sso_settings (
    organization BIGINT PRIMARY KEY REFERENCES organizations, settings TEXT NOT NULL
);

-- `members` is a JSON list of the repositories of a group, `revision` is that of the last commit.
CREATE TABLE repositories (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations, name {text_collate_c} NOT NULL, format TEXT NOT NULL,
    kind TEXT NOT NULL, public BIGINT NOT NULL, settings TEXT NOT NULL, upstream TEXT, members TEXT NOT NULL,
    revision BIGINT NOT NULL, settings_revision BIGINT NOT NULL, created_at BIGINT NOT NULL, UNIQUE (organization, name)
);

-- `scope` is 1 for read, 2 for write, 3 for both. `owner` has no foreign key, because the row
-- outlives its owner.
CREATE TABLE tokens (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations, secret_sha256 {blob} NOT NULL UNIQUE,
    name TEXT NOT NULL, scope BIGINT NOT NULL, format TEXT NOT NULL, owner BIGINT, created_by TEXT NOT NULL, backing TEXT,
    backing_repository BIGINT, expires_at BIGINT, ends_at BIGINT, revoked_at BIGINT, created_at BIGINT NOT NULL,
    last_used_at BIGINT
);
CREATE INDEX tokens_by_owner ON tokens (organization, owner, id);

CREATE TABLE token_repositories (
    token BIGINT NOT NULL REFERENCES tokens ON DELETE CASCADE,
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, PRIMARY KEY (token, repository)
){without_rowid};
CREATE INDEX token_repositories_by_repository ON token_repositories (repository);

CREATE TABLE audit_events (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations, at BIGINT NOT NULL, actor TEXT NOT NULL,
    action TEXT NOT NULL, subject TEXT NOT NULL, address TEXT NOT NULL, allowed BIGINT NOT NULL, detail TEXT NOT NULL
);
CREATE INDEX audit_events_by_organization ON audit_events (organization, id);

-- Either `data` has the bytes of a small blob, or `place` the key of a larger one in the blob
-- storage. `checked` is the check value of the bytes, `digests` are digests other than SHA-256, as
-- `md5:<hex> sha1:<hex>`. `marked_at` is the time since which nothing was found to name or pin the
-- blob.
CREATE TABLE blobs (
    id {integer_primary_key}, sha256 {blob} NOT NULL UNIQUE, size BIGINT NOT NULL, checked BIGINT NOT NULL, place TEXT UNIQUE, data {blob},
    digests TEXT NOT NULL, marked_at BIGINT, created_at BIGINT NOT NULL
);
CREATE INDEX blobs_by_mark ON blobs (marked_at) WHERE marked_at IS NOT NULL;

-- Keys in the blob storage that no row of `blobs` names: of bytes to be removed, and of objects
-- being written. They are removed when they are `due` and still unnamed. 0 means that the removal
-- has begun. `multipart` is the id of an unfinished upload.
CREATE TABLE strays (place TEXT PRIMARY KEY, multipart TEXT, due BIGINT NOT NULL);
CREATE INDEX strays_by_time ON strays (due);

CREATE TABLE records (
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, key {text_collate_c} NOT NULL, value {blob} NOT NULL,
    revision BIGINT NOT NULL, PRIMARY KEY (repository, key)
){without_rowid};

-- Blobs that a record keeps alive.
CREATE TABLE record_blobs (
    repository BIGINT NOT NULL, key {text_collate_c} NOT NULL, blob BIGINT NOT NULL REFERENCES blobs,
    PRIMARY KEY (repository, key, blob)
){without_rowid};
CREATE INDEX record_blobs_by_blob ON record_blobs (blob, repository);

-- Pins: blobs that a repository holds for a time, whether or not a record names them.
CREATE TABLE leases (
    blob BIGINT NOT NULL REFERENCES blobs, repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE,
    until BIGINT NOT NULL, PRIMARY KEY (blob, repository)
){without_rowid};
CREATE INDEX leases_by_repository ON leases (repository);

-- `state` is the state of the hashes. In a bucket the bytes are the parts of the multipart upload
-- `multipart` to the key `place`, and `tail` has the rest that is too short for a part. In a folder
-- they are the file of this name. The request that appends bytes holds `claim` until
-- `claimed_until`, unless it renews it.
CREATE TABLE uploads (
    name TEXT PRIMARY KEY, repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, note TEXT NOT NULL,
    length BIGINT NOT NULL, state {blob} NOT NULL, place TEXT, multipart TEXT, tail {blob}, claim BIGINT NOT NULL,
    claimed_until BIGINT NOT NULL, updated_at BIGINT NOT NULL
);
CREATE INDEX uploads_by_repository ON uploads (repository);
CREATE INDEX uploads_by_time ON uploads (updated_at);

CREATE TABLE upload_parts (
    upload TEXT NOT NULL REFERENCES uploads ON DELETE CASCADE, number BIGINT NOT NULL, tag TEXT NOT NULL,
    PRIMARY KEY (upload, number)
){without_rowid};

-- The catalog. `search` is the name, a line feed and the summary of the version added last, in
-- lower case.
CREATE TABLE packages (
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, name {text_collate_c} NOT NULL, search TEXT NOT NULL,
    updated_at BIGINT NOT NULL, PRIMARY KEY (repository, name)
){without_rowid};

-- `properties` is a JSON list of pairs of name and value.
CREATE TABLE versions (
    repository BIGINT NOT NULL, name {text_collate_c} NOT NULL, version {text_collate_c} NOT NULL, published BIGINT, summary TEXT NOT NULL,
    search TEXT NOT NULL, properties TEXT NOT NULL, state TEXT NOT NULL, shown_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL, PRIMARY KEY (repository, name, version),
    FOREIGN KEY (repository, name) REFERENCES packages ON DELETE CASCADE
){without_rowid};

CREATE TABLE files (
    repository BIGINT NOT NULL, name {text_collate_c} NOT NULL, version {text_collate_c} NOT NULL, path {text_collate_c} NOT NULL, digest TEXT NOT NULL,
    size BIGINT NOT NULL, PRIMARY KEY (repository, name, version, path),
    FOREIGN KEY (repository, name, version) REFERENCES versions ON DELETE CASCADE
){without_rowid};
