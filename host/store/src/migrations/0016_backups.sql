-- Backups that were taken of this database, for who looks after it. They are not in a backup themselves. `hold` names the row of `meta`
-- that stands while one is being taken; times are ms since 1970.
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
