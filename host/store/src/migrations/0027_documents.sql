-- Documents that describe the contents of versions. `path` is the file of the version that a
-- document is about, `source` is the path in the repository of the document or of the file that
-- contains it, both empty if there is none. `digest` is that of a blob that a record keeps alive.
CREATE TABLE documents (
    id {integer_primary_key}, repository BIGINT NOT NULL, name {text_collate_c} NOT NULL, version {text_collate_c} NOT NULL,
    path {text_collate_c} NOT NULL, source {text_collate_c} NOT NULL, title {text_collate_c} NOT NULL, form TEXT NOT NULL,
    media_type TEXT NOT NULL, digest TEXT NOT NULL, size BIGINT NOT NULL,
    FOREIGN KEY (repository, name, version) REFERENCES versions ON DELETE CASCADE
);
CREATE UNIQUE INDEX documents_by_version ON documents (repository, name, version, path, source, title);

-- Documents of deleted versions that can be restored.
CREATE TABLE trash_documents (
    entry BIGINT NOT NULL REFERENCES trash ON DELETE CASCADE, id BIGINT NOT NULL, name {text_collate_c} NOT NULL,
    version {text_collate_c} NOT NULL, path {text_collate_c} NOT NULL, source {text_collate_c} NOT NULL, title {text_collate_c} NOT NULL,
    form TEXT NOT NULL, media_type TEXT NOT NULL, digest TEXT NOT NULL, size BIGINT NOT NULL, PRIMARY KEY (entry, id)
);
