-- SQLite stores whole rows in the upper pages of a table in key order. Those of a million versions
-- did not fit into memory. So new versions and files are appended, and only their keys are in
-- order. PostgreSQL works this way anyway.
CREATE TABLE new_versions (
    repository BIGINT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, published BIGINT, summary TEXT NOT NULL,
    search TEXT NOT NULL, properties TEXT NOT NULL, state TEXT NOT NULL, shown_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL, PRIMARY KEY (repository, name, version),
    FOREIGN KEY (repository, name) REFERENCES packages ON DELETE CASCADE
);
INSERT INTO new_versions (repository, name, version, published, summary, search, properties, state, shown_at, updated_at)
    SELECT repository, name, version, published, summary, search, properties, state, shown_at, updated_at FROM versions
    ORDER BY repository, name, version;
CREATE TABLE new_files (
    repository BIGINT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, path TEXT NOT NULL, digest TEXT NOT NULL,
    size BIGINT NOT NULL, PRIMARY KEY (repository, name, version, path),
    FOREIGN KEY (repository, name, version) REFERENCES new_versions ON DELETE CASCADE
);
INSERT INTO new_files (repository, name, version, path, digest, size)
    SELECT repository, name, version, path, digest, size FROM files ORDER BY repository, name, version, path;
DROP TABLE files;
DROP TABLE versions;
ALTER TABLE new_versions RENAME TO versions;
ALTER TABLE new_files RENAME TO files;
CREATE INDEX versions_by_time ON versions (repository, name, (COALESCE(published, shown_at)), version);
