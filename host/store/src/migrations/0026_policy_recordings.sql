-- Of calls of a policy's component: the rule that they judge by, one set of each rule. Such a set is of no format (an empty text) and of no
-- repository (0).
ALTER TABLE recording_sets ADD COLUMN rule BIGINT;
CREATE UNIQUE INDEX recording_sets_of_rules ON recording_sets (rule) WHERE rule IS NOT NULL;
