-- Counters (see 0011_people.sql) and the index of texts.

-- All pieces of one, two or three characters of each document's text, in hexadecimal digits.
CREATE VIRTUAL TABLE search_grams USING fts5(grams, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

CREATE TRIGGER usage_of_new_repository AFTER INSERT ON repositories BEGIN
    INSERT INTO repository_usage (repository) VALUES (NEW.id);
END;
CREATE TRIGGER usage_of_new_package AFTER INSERT ON packages BEGIN
    UPDATE repository_usage SET packages = packages + 1 WHERE repository = NEW.repository;
END;
CREATE TRIGGER usage_of_gone_package AFTER DELETE ON packages BEGIN
    UPDATE repository_usage SET packages = packages - 1 WHERE repository = OLD.repository;
END;
CREATE TRIGGER usage_of_new_version AFTER INSERT ON versions BEGIN
    UPDATE repository_usage SET versions = versions + 1, last_published_at = NEW.shown_at WHERE repository = NEW.repository;
END;
CREATE TRIGGER usage_of_gone_version AFTER DELETE ON versions BEGIN
    UPDATE repository_usage SET versions = versions - 1 WHERE repository = OLD.repository;
END;
CREATE TRIGGER usage_of_new_file AFTER INSERT ON files
    WHEN (SELECT COUNT(*) FROM files f WHERE f.repository = NEW.repository AND f.path = NEW.path) = 1 BEGIN
    UPDATE repository_usage SET bytes = bytes + NEW.size WHERE repository = NEW.repository;
END;
CREATE TRIGGER usage_of_gone_file AFTER DELETE ON files
    WHEN NOT EXISTS (SELECT 1 FROM files f WHERE f.repository = OLD.repository AND f.path = OLD.path) BEGIN
    UPDATE repository_usage SET bytes = bytes - OLD.size WHERE repository = OLD.repository;
END;
CREATE TRIGGER usage_of_changed_file AFTER UPDATE OF size ON files WHEN NEW.size <> OLD.size BEGIN
    UPDATE repository_usage SET bytes = bytes + NEW.size - OLD.size WHERE repository = NEW.repository;
END;
