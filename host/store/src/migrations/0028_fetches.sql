-- Versions that a token fetched, with the days. `last_day` counts from 1970-01-01 UTC, and bit n of
-- `days` is the n-th day before it. Rows outlive the token, because they show what a leaked token
-- has read.
CREATE TABLE fetches (
    token BIGINT NOT NULL, repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, name {text_collate_c} NOT NULL,
    version {text_collate_c} NOT NULL, last_day BIGINT NOT NULL, days BIGINT NOT NULL, PRIMARY KEY (token, repository, name, version)
){without_rowid};
CREATE INDEX fetches_by_day ON fetches (last_day);
CREATE INDEX fetches_by_repository ON fetches (repository);
