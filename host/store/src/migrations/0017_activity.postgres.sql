-- See 0017_activity.sql.
CREATE FUNCTION packhouse_activity_of_versions() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO activity (repository, name, day, publishes)
        SELECT repository, '', COALESCE(published, shown_at) / 86400000, COUNT(*) FROM changed
        WHERE COALESCE(published, shown_at) >= shown_at - 2592000000
        GROUP BY repository, COALESCE(published, shown_at) / 86400000 ORDER BY 1, 3
        ON CONFLICT (repository, name, day) DO UPDATE SET publishes = activity.publishes + excluded.publishes;
    RETURN NULL;
END $$;
-- Triggers of one event run in the order of their names. This one runs after the counters of the
-- repository, whose row locks out others meanwhile.
CREATE TRIGGER usage_then_activity_of_new_version AFTER INSERT ON versions REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION packhouse_activity_of_versions();
