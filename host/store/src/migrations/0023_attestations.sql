-- Signed statements about versions and their files, as formats kept them, and what the host has made of them. `path` is the file of the
-- version that one is about, `source` where its bytes are fetched in the repository, both empty where there is none; `sha256` is of the
-- whole. `judged_by` is the fingerprint of what was trusted when it was judged, empty before that; `facts` is a JSON object.
CREATE TABLE attestations (
    id {integer_primary_key}, repository BIGINT NOT NULL, name {text_collate_c} NOT NULL, version {text_collate_c} NOT NULL,
    path {text_collate_c} NOT NULL, source {text_collate_c} NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, sha256 {blob} NOT NULL,
    attested_at BIGINT NOT NULL, verdict TEXT NOT NULL DEFAULT 'pending', reason TEXT NOT NULL DEFAULT '',
    facts TEXT NOT NULL DEFAULT '{}', judged_by {text_collate_c} NOT NULL DEFAULT '', judged_at BIGINT, bundle {blob} NOT NULL,
    FOREIGN KEY (repository, name, version) REFERENCES versions ON DELETE CASCADE
);
CREATE UNIQUE INDEX attestations_by_version ON attestations (repository, name, version, path, sha256);
CREATE INDEX attestations_pending ON attestations (id) WHERE judged_by = '';

-- Those of what was deleted and can be brought back.
CREATE TABLE trash_attestations (
    entry BIGINT NOT NULL REFERENCES trash ON DELETE CASCADE, id BIGINT NOT NULL, name {text_collate_c} NOT NULL,
    version {text_collate_c} NOT NULL, path {text_collate_c} NOT NULL, source {text_collate_c} NOT NULL, kind TEXT NOT NULL,
    subject TEXT NOT NULL, sha256 {blob} NOT NULL, bundle {blob} NOT NULL, attested_at BIGINT NOT NULL, verdict TEXT NOT NULL,
    reason TEXT NOT NULL, facts TEXT NOT NULL, judged_by {text_collate_c} NOT NULL, judged_at BIGINT, PRIMARY KEY (entry, id)
);
