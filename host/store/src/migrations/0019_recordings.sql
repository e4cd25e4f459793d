-- Recorded plugin calls. A set has the repository, the maximum number of recordings (`wanted`), and
-- whether only failing calls are recorded. It records until `armed_until`. The recordings serve the
-- analysis of a plugin and are not backed up. Times are in ms since 1970.
CREATE TABLE recording_sets (
    id {integer_primary_key}, organization BIGINT NOT NULL REFERENCES organizations ON DELETE CASCADE, format TEXT NOT NULL,
    repository BIGINT NOT NULL, wanted BIGINT NOT NULL, only_failures BIGINT NOT NULL, created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL, armed_until BIGINT NOT NULL
);
CREATE INDEX recording_sets_by_organization ON recording_sets (organization, format, id);

-- `outcome` is one word, `content` is the compressed file, and `bytes` is its compressed length.
CREATE TABLE recordings (
    id {integer_primary_key}, recording_set BIGINT NOT NULL REFERENCES recording_sets ON DELETE CASCADE, recorded_at BIGINT NOT NULL,
    function TEXT NOT NULL, outcome TEXT NOT NULL, component TEXT NOT NULL, is_cut BIGINT NOT NULL, bytes BIGINT NOT NULL,
    content {blob} NOT NULL
);
CREATE INDEX recordings_by_set ON recordings (recording_set, id);
