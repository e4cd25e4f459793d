-- Daily activity of repositories, retained for some weeks. `day` counts from 1970-01-01 UTC. An
-- empty name is the whole repository. Packages have only `downloads`, because `versions` contains
-- their publishes. Triggers in the files of each database count `publishes`: each version on the
-- day of its publication, unless that was long before it arrived.
CREATE TABLE activity (
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, name {text_collate_c} NOT NULL, day BIGINT NOT NULL,
    publishes BIGINT NOT NULL DEFAULT 0, downloads BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (repository, name, day)
){without_rowid};
CREATE INDEX activity_by_day ON activity (day);
INSERT INTO activity (repository, name, day, publishes)
    SELECT repository, '', COALESCE(published, shown_at) / 86400000, COUNT(*) FROM versions
    WHERE COALESCE(published, shown_at) >= (SELECT MAX(shown_at) FROM versions) - 2592000000
    GROUP BY repository, COALESCE(published, shown_at) / 86400000;

-- Lists of these are read a page at a time in the order of creation, without sorting.
CREATE INDEX members_in_order ON members (organization, id);
CREATE INDEX repositories_in_order ON repositories (organization, id);
CREATE INDEX trash_in_order ON trash (repository, id);
