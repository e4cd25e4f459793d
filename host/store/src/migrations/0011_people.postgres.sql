-- Counters (see 0011_people.sql) and the index of texts.

-- All pieces of one, two or three characters of each document's text, in hexadecimal digits.
CREATE TABLE search_grams (rowid BIGINT PRIMARY KEY, grams TSVECTOR NOT NULL);
CREATE INDEX search_grams_by_gram ON search_grams USING gin (grams);

CREATE FUNCTION packhouse_usage_of_repository() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO repository_usage (repository) SELECT id FROM added;
    RETURN NULL;
END $$;
CREATE TRIGGER usage_of_new_repository AFTER INSERT ON repositories REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION packhouse_usage_of_repository();

CREATE FUNCTION packhouse_usage_of_packages() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE repository_usage u SET packages = u.packages + x.n
            FROM (SELECT repository, COUNT(*) AS n FROM changed GROUP BY repository) x WHERE u.repository = x.repository;
    ELSE
        UPDATE repository_usage u SET packages = u.packages - x.n
            FROM (SELECT repository, COUNT(*) AS n FROM changed GROUP BY repository) x WHERE u.repository = x.repository;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER usage_of_new_package AFTER INSERT ON packages REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION packhouse_usage_of_packages();
CREATE TRIGGER usage_of_gone_package AFTER DELETE ON packages REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION packhouse_usage_of_packages();

CREATE FUNCTION packhouse_usage_of_versions() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE repository_usage u SET versions = u.versions + x.n, last_published_at = x.at
            FROM (SELECT repository, COUNT(*) AS n, MAX(shown_at) AS at FROM changed GROUP BY repository) x
            WHERE u.repository = x.repository;
    ELSE
        UPDATE repository_usage u SET versions = u.versions - x.n
            FROM (SELECT repository, COUNT(*) AS n FROM changed GROUP BY repository) x WHERE u.repository = x.repository;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER usage_of_new_version AFTER INSERT ON versions REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION packhouse_usage_of_versions();
CREATE TRIGGER usage_of_gone_version AFTER DELETE ON versions REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION packhouse_usage_of_versions();

-- A path counts when it is new, that is when all rows with it are new ones, and no longer when the
-- last row with it is deleted.
CREATE FUNCTION packhouse_usage_of_files() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE repository_usage u SET bytes = u.bytes + x.bytes
            FROM (SELECT a.repository, SUM(a.size) AS bytes
                FROM (SELECT repository, path, MAX(size) AS size, COUNT(*) AS n FROM changed GROUP BY repository, path) a
                WHERE (SELECT COUNT(*) FROM files f WHERE f.repository = a.repository AND f.path = a.path) = a.n
                GROUP BY a.repository) x WHERE u.repository = x.repository;
    ELSE
        UPDATE repository_usage u SET bytes = u.bytes - x.bytes
            FROM (SELECT a.repository, SUM(a.size) AS bytes
                FROM (SELECT repository, path, MAX(size) AS size FROM changed GROUP BY repository, path) a
                WHERE NOT EXISTS (SELECT 1 FROM files f WHERE f.repository = a.repository AND f.path = a.path)
                GROUP BY a.repository) x WHERE u.repository = x.repository;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER usage_of_new_file AFTER INSERT ON files REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION packhouse_usage_of_files();
CREATE TRIGGER usage_of_gone_file AFTER DELETE ON files REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION packhouse_usage_of_files();

CREATE FUNCTION packhouse_usage_of_changed_file() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
    UPDATE repository_usage SET bytes = bytes + NEW.size - OLD.size WHERE repository = NEW.repository;
    RETURN NULL;
END $$;
CREATE TRIGGER usage_of_changed_file AFTER UPDATE OF size ON files FOR EACH ROW WHEN (NEW.size <> OLD.size)
    EXECUTE FUNCTION packhouse_usage_of_changed_file();
