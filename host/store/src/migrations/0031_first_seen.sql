-- When the server first saw a version of a proxy's upstream that states no time for it, in ms since 1970: its age counts from then. In place of
-- a version stands the digest of what was fetched where the fetch named one: a version, as a tag, may name other bytes later.
CREATE TABLE first_seen (
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, name {text_collate_c} NOT NULL,
    version {text_collate_c} NOT NULL, seen_at BIGINT NOT NULL, PRIMARY KEY (repository, name, version)
){without_rowid};
CREATE INDEX first_seen_by_time ON first_seen (repository, seen_at);
-- What a proxy served before was seen when it was first shown. A version whose file is called exactly as the version is, is a name that may
-- move to other bytes, unless it is the digest of these.
INSERT INTO first_seen (repository, name, version, seen_at)
    SELECT v.repository, v.name, v.version, v.shown_at FROM versions v JOIN repositories r ON r.id = v.repository
    WHERE r.kind = 'proxy' AND EXISTS (SELECT 1 FROM files f
        WHERE f.repository = v.repository AND f.name = v.name AND f.version = v.version
        AND (f.digest = v.version OR substr(f.path, length(f.path) - length(v.version)) <> '/' || v.version));
