-- See 0017_activity.sql.
CREATE TRIGGER activity_of_new_version AFTER INSERT ON versions WHEN COALESCE(NEW.published, NEW.shown_at) >= NEW.shown_at - 2592000000 BEGIN
    INSERT INTO activity (repository, name, day, publishes) VALUES (NEW.repository, '', COALESCE(NEW.published, NEW.shown_at) / 86400000, 1)
        ON CONFLICT (repository, name, day) DO UPDATE SET publishes = publishes + 1;
END;
