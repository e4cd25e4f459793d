-- The versions of a package by their time, so that the newest of it and their number are told without reading the versions.
CREATE INDEX versions_by_time ON versions (repository, name, (COALESCE(published, shown_at)), version);

-- Packages that are being deleted. `versions` is a JSON list of those that are left, `event` what is remembered of each; whoever is
-- at it has it until `claimed_until`.
CREATE TABLE deletions (
    id {integer_primary_key}, repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, name TEXT NOT NULL, versions TEXT NOT NULL,
    event TEXT NOT NULL, claimed_until BIGINT NOT NULL
);
CREATE INDEX deletions_by_repository ON deletions (repository);
