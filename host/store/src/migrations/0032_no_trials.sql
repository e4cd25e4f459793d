-- The table and a column of a former feature stay while servers of the previous version read them.
-- Only recordings that it made are deleted.
DELETE FROM recording_sets WHERE trial IS NOT NULL;
DELETE FROM plugin_trials;
