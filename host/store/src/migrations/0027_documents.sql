-- Documents that came with versions and describe what those are made of. `path` is the file of the version that one is about, `source` where
-- it came in the repository, alone or within something else, both empty where there is none; `digest` is of a blob that a record keeps alive.
CREATE TABLE documents (
    id {integer_primary_key}, repository BIGINT NOT NULL, name {text_collate_c} NOT NULL, version {text_collate_c} NOT NULL,
    path {text_collate_c} NOT NULL, source {text_collate_c} NOT NULL, title {text_collate_c} NOT NULL, form TEXT NOT NULL,
    media_type TEXT NOT NULL, digest TEXT NOT NULL, size BIGINT NOT NULL,
    FOREIGN KEY (repository, name, version) REFERENCES versions ON DELETE CASCADE
);
CREATE UNIQUE INDEX documents_by_version ON documents (repository, name, version, path, source, title);

-- Those of what was deleted and can be brought back.
CREATE TABLE trash_documents (
    entry BIGINT NOT NULL REFERENCES trash ON DELETE CASCADE, id BIGINT NOT NULL, name {text_collate_c} NOT NULL,
    version {text_collate_c} NOT NULL, path {text_collate_c} NOT NULL, source {text_collate_c} NOT NULL, title {text_collate_c} NOT NULL,
    form TEXT NOT NULL, media_type TEXT NOT NULL, digest TEXT NOT NULL, size BIGINT NOT NULL, PRIMARY KEY (entry, id)
);
