-- Deletions that can be undone. An entry is `open` until its deletion is complete, and an
-- interrupted deletion continues with the same entry. `gone_at` is the time of the permanent
-- removal, in ms since 1970.
CREATE TABLE trash (
    id {integer_primary_key}, repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, name {text_collate_c} NOT NULL,
    version {text_collate_c} NOT NULL, deleted_at BIGINT NOT NULL, deleted_by TEXT NOT NULL, gone_at BIGINT NOT NULL, open BIGINT NOT NULL
);
CREATE INDEX trash_by_repository ON trash (repository, name, version, id);
CREATE INDEX trash_by_end ON trash (gone_at);
CREATE INDEX trash_open ON trash (deleted_at) WHERE open = 1;

-- Records that a deletion changed, removed or relied on, in their previous state. `value` is null
-- if there was no record. `after` is SHA-256 of the value that the deletion wrote, or null if it
-- wrote nothing or removed the record.
CREATE TABLE trash_records (
    entry BIGINT NOT NULL REFERENCES trash ON DELETE CASCADE, key {text_collate_c} NOT NULL, value {blob}, blobs TEXT, after {blob},
    PRIMARY KEY (entry, key)
);

-- Blobs that those records named, held as long as the entry exists.
CREATE TABLE trash_blobs (
    blob BIGINT NOT NULL REFERENCES blobs, entry BIGINT NOT NULL REFERENCES trash ON DELETE CASCADE, PRIMARY KEY (blob, entry)
){without_rowid};
CREATE INDEX trash_blobs_by_entry ON trash_blobs (entry);

-- Catalog entries of the deletion.
CREATE TABLE trash_versions (
    entry BIGINT NOT NULL REFERENCES trash ON DELETE CASCADE, name {text_collate_c} NOT NULL, version {text_collate_c} NOT NULL,
    published BIGINT, summary TEXT NOT NULL, properties TEXT NOT NULL, state TEXT NOT NULL, shown_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL, published_by TEXT NOT NULL, downloads BIGINT NOT NULL, last_downloaded_at BIGINT,
    PRIMARY KEY (entry, name, version)
);
CREATE TABLE trash_files (
    entry BIGINT NOT NULL REFERENCES trash ON DELETE CASCADE, name {text_collate_c} NOT NULL, version {text_collate_c} NOT NULL,
    path {text_collate_c} NOT NULL, digest TEXT NOT NULL, size BIGINT NOT NULL, downloads BIGINT NOT NULL,
    PRIMARY KEY (entry, name, version, path)
);
