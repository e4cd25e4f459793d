-- Table of a feature that step 32 removed. It stays while servers of the previous version read it.
CREATE TABLE plugin_trials (
    format {text_collate_c} NOT NULL PRIMARY KEY, id BIGINT NOT NULL, digest TEXT NOT NULL, mode TEXT NOT NULL,
    organization BIGINT NOT NULL REFERENCES organizations ON DELETE CASCADE, repositories TEXT, percent BIGINT NOT NULL,
    max_failures BIGINT, started_by TEXT NOT NULL, started_at BIGINT NOT NULL, ended_at BIGINT,
    calls BIGINT NOT NULL, equal BIGINT NOT NULL, different BIGINT NOT NULL, failed BIGINT NOT NULL, unanswered BIGINT NOT NULL,
    changed BIGINT NOT NULL, dropped BIGINT NOT NULL, active_calls BIGINT NOT NULL, active_us BIGINT NOT NULL,
    active_max_us BIGINT NOT NULL, candidate_calls BIGINT NOT NULL, candidate_us BIGINT NOT NULL, candidate_max_us BIGINT NOT NULL
);

-- Column of the same feature.
ALTER TABLE recording_sets ADD COLUMN trial BIGINT;
CREATE INDEX recording_sets_of_trials ON recording_sets (trial) WHERE trial IS NOT NULL;
