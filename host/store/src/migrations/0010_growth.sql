-- What a publish changes at places of the database that have nothing to do with each other is less; repositories are removed in pieces.

-- The blobs that a record names stand in its row, as numbers with a space between them, and where there are none nothing does.
ALTER TABLE records ADD COLUMN blobs TEXT;
UPDATE records SET blobs = (SELECT string_agg(CAST(n.blob AS TEXT), ' ') FROM record_blobs n
        WHERE n.repository = records.repository AND n.key = records.key)
    WHERE EXISTS (SELECT 1 FROM record_blobs n WHERE n.repository = records.repository AND n.key = records.key);

-- So what names a blob is asked by the blob alone, and what names a new one stands at the end.
CREATE TABLE named_blobs (
    blob BIGINT NOT NULL REFERENCES blobs, repository BIGINT NOT NULL, key {text_collate_c} NOT NULL,
    PRIMARY KEY (blob, repository, key)
){without_rowid};
INSERT INTO named_blobs (blob, repository, key)
    SELECT blob, repository, key FROM record_blobs ORDER BY blob, repository, key;
DROP TABLE record_blobs;
ALTER TABLE named_blobs RENAME TO record_blobs;

-- Since when a repository is deleted: it is in nobody's sight, and its row stands until the last of what it held is gone. `removals`
-- has those of which something is left. Whoever is at it has it until `claimed_until`.
ALTER TABLE repositories ADD COLUMN deleted_at BIGINT;
CREATE TABLE removals (
    repository BIGINT PRIMARY KEY REFERENCES repositories ON DELETE CASCADE, claimed_until BIGINT NOT NULL
);

-- Leases that are over are found without reading those that are not.
CREATE INDEX leases_by_end ON leases (until);
