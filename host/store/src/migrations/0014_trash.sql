-- What was deleted by people and can be brought back. An entry is `open` until the deletion that fills it has come to its end: one that
-- was interrupted goes on with the same. `gone_at` is when it goes for good, in ms since 1970.
CREATE TABLE trash (
    id {integer_primary_key}, repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, name {text_collate_c} NOT NULL,
    version {text_collate_c} NOT NULL, deleted_at BIGINT NOT NULL, deleted_by TEXT NOT NULL, gone_at BIGINT NOT NULL, open BIGINT NOT NULL
);
CREATE INDEX trash_by_repository ON trash (repository, name, version, id);
CREATE INDEX trash_by_end ON trash (gone_at);
CREATE INDEX trash_open ON trash (deleted_at) WHERE open = 1;

-- Each record that a deletion changed, removed or relied on, as it was before: no `value` where there was none. `after` is
-- SHA-256 of what the deletion made of it, null where it made nothing of it or removed it.
CREATE TABLE trash_records (
    entry BIGINT NOT NULL REFERENCES trash ON DELETE CASCADE, key {text_collate_c} NOT NULL, value {blob}, blobs TEXT, after {blob},
    PRIMARY KEY (entry, key)
);

-- The blobs that those records named, held as long as the entry is there.
CREATE TABLE trash_blobs (
    blob BIGINT NOT NULL REFERENCES blobs, entry BIGINT NOT NULL REFERENCES trash ON DELETE CASCADE, PRIMARY KEY (blob, entry)
){without_rowid};
CREATE INDEX trash_blobs_by_entry ON trash_blobs (entry);

-- What was shown.
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
