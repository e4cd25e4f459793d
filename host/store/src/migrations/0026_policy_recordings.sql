-- The rule whose component's calls are recorded, with one set for each rule. Such a set has no
-- format (an empty text) and no repository (0).
ALTER TABLE recording_sets ADD COLUMN rule BIGINT;
CREATE UNIQUE INDEX recording_sets_of_rules ON recording_sets (rule) WHERE rule IS NOT NULL;
