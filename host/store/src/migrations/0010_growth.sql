-- A publish changes fewer unrelated pages of the database, and repositories are removed in pieces.

-- The blobs that a record names are in its row, as numbers separated by spaces, or null if there
-- are none.
ALTER TABLE records ADD COLUMN blobs TEXT;
UPDATE records SET blobs = (SELECT string_agg(CAST(n.blob AS TEXT), ' ') FROM record_blobs n
        WHERE n.repository = records.repository AND n.key = records.key)
    WHERE EXISTS (SELECT 1 FROM record_blobs n WHERE n.repository = records.repository AND n.key = records.key);

-- Rows are now found by the blob alone, and rows of new blobs are at the end.
CREATE TABLE named_blobs (
    blob BIGINT NOT NULL REFERENCES blobs, repository BIGINT NOT NULL, key {text_collate_c} NOT NULL,
    PRIMARY KEY (blob, repository, key)
){without_rowid};
INSERT INTO named_blobs (blob, repository, key)
    SELECT blob, repository, key FROM record_blobs ORDER BY blob, repository, key;
DROP TABLE record_blobs;
ALTER TABLE named_blobs RENAME TO record_blobs;

-- Time of a repository's deletion. A deleted repository is invisible, and its row stays until the
-- last of its content is gone. `removals` has the repositories with remaining content. A server
-- holds a removal until `claimed_until`.
ALTER TABLE repositories ADD COLUMN deleted_at BIGINT;
CREATE TABLE removals (
    repository BIGINT PRIMARY KEY REFERENCES repositories ON DELETE CASCADE, claimed_until BIGINT NOT NULL
);

-- Expired pins are found without reading the others.
CREATE INDEX leases_by_end ON leases (until);
