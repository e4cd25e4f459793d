-- Time at which the server first saw a version of an upstream that states no time, in ms since
-- 1970. Its age counts from then. If a fetch named a digest, that replaces the version, because a
-- version (such as a tag) may name other bytes later.
CREATE TABLE first_seen (
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, name {text_collate_c} NOT NULL,
    version {text_collate_c} NOT NULL, seen_at BIGINT NOT NULL, PRIMARY KEY (repository, name, version)
){without_rowid};
CREATE INDEX first_seen_by_time ON first_seen (repository, seen_at);
-- Versions that a proxy served before were first seen when they were first listed. A version whose
-- file has exactly the name of the version may move to other bytes, unless it is their digest.
INSERT INTO first_seen (repository, name, version, seen_at)
    SELECT v.repository, v.name, v.version, v.shown_at FROM versions v JOIN repositories r ON r.id = v.repository
    WHERE r.kind = 'proxy' AND EXISTS (SELECT 1 FROM files f
        WHERE f.repository = v.repository AND f.name = v.name AND f.version = v.version
        AND (f.digest = v.version OR substr(f.path, length(f.path) - length(v.version)) <> '/' || v.version));
