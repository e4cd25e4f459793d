-- Signed statements about versions and their files, with their verification results. `path` is the
-- file of the version that a statement is about, `source` is the path in the repository where it
-- can be fetched, both empty if there is none. `sha256` is the digest of the whole statement.
-- `judged_by` is the fingerprint of the trust used for the verification, empty before it. `facts`
-- is a JSON object.
CREATE TABLE attestations (
    id {integer_primary_key}, repository BIGINT NOT NULL, name {text_collate_c} NOT NULL, version {text_collate_c} NOT NULL,
    path {text_collate_c} NOT NULL, source {text_collate_c} NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, sha256 {blob} NOT NULL,
    attested_at BIGINT NOT NULL, verdict TEXT NOT NULL DEFAULT 'pending', reason TEXT NOT NULL DEFAULT '',
    facts TEXT NOT NULL DEFAULT '{}', judged_by {text_collate_c} NOT NULL DEFAULT '', judged_at BIGINT, bundle {blob} NOT NULL,
    FOREIGN KEY (repository, name, version) REFERENCES versions ON DELETE CASCADE
);
CREATE UNIQUE INDEX attestations_by_version ON attestations (repository, name, version, path, sha256);
CREATE INDEX attestations_pending ON attestations (id) WHERE judged_by = '';

-- Statements of deleted versions that can be restored.
CREATE TABLE trash_attestations (
    entry BIGINT NOT NULL REFERENCES trash ON DELETE CASCADE, id BIGINT NOT NULL, name {text_collate_c} NOT NULL,
    version {text_collate_c} NOT NULL, path {text_collate_c} NOT NULL, source {text_collate_c} NOT NULL, kind TEXT NOT NULL,
    subject TEXT NOT NULL, sha256 {blob} NOT NULL, bundle {blob} NOT NULL, attested_at BIGINT NOT NULL, verdict TEXT NOT NULL,
    reason TEXT NOT NULL, facts TEXT NOT NULL, judged_by {text_collate_c} NOT NULL, judged_at BIGINT, PRIMARY KEY (entry, id)
);
