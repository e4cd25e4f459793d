-- Data for people: the publisher of a version, numbers of downloads, the size of repositories, and
-- an index of packages.

ALTER TABLE organizations ADD COLUMN quota_bytes BIGINT;

ALTER TABLE versions ADD COLUMN published_by TEXT NOT NULL DEFAULT '';
ALTER TABLE versions ADD COLUMN downloads BIGINT NOT NULL DEFAULT 0;
ALTER TABLE versions ADD COLUMN last_downloaded_at BIGINT;
ALTER TABLE files ADD COLUMN downloads BIGINT NOT NULL DEFAULT 0;
CREATE INDEX files_by_path ON files (repository, path);
CREATE INDEX files_by_digest ON files (repository, digest);

-- Counters of a repository's catalog. `bytes` is the size of its files, each path once. Triggers in
-- the files of each database maintain all but `downloads`.
CREATE TABLE repository_usage (
    repository BIGINT PRIMARY KEY REFERENCES repositories ON DELETE CASCADE, bytes BIGINT NOT NULL DEFAULT 0,
    packages BIGINT NOT NULL DEFAULT 0, versions BIGINT NOT NULL DEFAULT 0, downloads BIGINT NOT NULL DEFAULT 0, last_published_at BIGINT
);
INSERT INTO repository_usage (repository, bytes, packages, versions, last_published_at)
    SELECT r.id,
        (SELECT COALESCE(SUM(f.size), 0) FROM (SELECT path, MAX(size) AS size FROM files WHERE repository = r.id GROUP BY path) f),
        (SELECT COUNT(*) FROM packages p WHERE p.repository = r.id),
        (SELECT COUNT(*) FROM versions v WHERE v.repository = r.id),
        (SELECT MAX(v.shown_at) FROM versions v WHERE v.repository = r.id)
    FROM repositories r;

-- The index of packages. Changes are in the queue until they are indexed, and an empty name is a
-- deleted repository. `folded` is the name in lower case, `text_sha256` is the digest of the
-- indexed text. `packages` confirms each match.
CREATE TABLE search_queue (id {integer_primary_key}, repository BIGINT NOT NULL, name {text_collate_c} NOT NULL);
CREATE TABLE search_documents (
    id {integer_primary_key}, organization BIGINT NOT NULL, repository BIGINT NOT NULL, name {text_collate_c} NOT NULL,
    folded {text_collate_c} NOT NULL, text_sha256 {blob} NOT NULL, UNIQUE (repository, name)
);
CREATE INDEX search_documents_by_name ON search_documents (organization, folded, repository, name);
CREATE INDEX search_documents_by_repository ON search_documents (repository, folded, name);
INSERT INTO search_queue (id, repository, name) SELECT ROW_NUMBER() OVER (), repository, name FROM packages;
-- The holder of this row's lock writes the index.
INSERT INTO meta (name, value) VALUES ('search_index', '');
