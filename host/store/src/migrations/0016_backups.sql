-- Backups of this database, for its operator. The table itself is not backed up. `hold` is the name
-- of the row of `meta` that exists while a backup is running. Times are in ms since 1970.
CREATE TABLE backups (
    id {text_collate_c} NOT NULL PRIMARY KEY,
    place TEXT NOT NULL,
    hold TEXT NOT NULL,
    began_at BIGINT NOT NULL,
    ended_at BIGINT,
    row_count BIGINT,
    blobs BIGINT,
    blob_bytes BIGINT,
    copied_bytes BIGINT,
    error TEXT
){without_rowid};
CREATE INDEX backups_by_time ON backups (began_at);
