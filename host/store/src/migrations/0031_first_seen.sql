-- When the server first saw a version of a proxy's upstream that states no time for it, in ms since 1970: its age counts from then. In place of
-- a version stands the digest of what was fetched where the fetch named one: a version, as a tag, may name other bytes later.
CREATE TABLE first_seen (
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, name {text_collate_c} NOT NULL,
    version {text_collate_c} NOT NULL, seen_at BIGINT NOT NULL, PRIMARY KEY (repository, name, version)
){without_rowid};
CREATE INDEX first_seen_by_time ON first_seen (repository, seen_at);
