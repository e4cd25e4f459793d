-- Index of a package's versions by time. It answers the newest version and the number of versions
-- without reading the versions.
CREATE INDEX versions_by_time ON versions (repository, name, (COALESCE(published, shown_at)), version);

-- Deletions of packages in progress. `versions` is a JSON list of the remaining versions, `event`
-- is the audit event of each. A server holds the deletion until `claimed_until`.
CREATE TABLE deletions (
    id {integer_primary_key}, repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, name TEXT NOT NULL, versions TEXT NOT NULL,
    event TEXT NOT NULL, claimed_until BIGINT NOT NULL
);
CREATE INDEX deletions_by_repository ON deletions (repository);
