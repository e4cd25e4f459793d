-- Advisories about packages in the OSV format, imported by the operator for all organizations.
-- `modified` and `withdrawn` are the record's own times in ms since 1970, `severity` is 0 (unknown)
-- to 4 (critical), `record` is the JSON.
CREATE TABLE advisories (
    id {text_collate_c} NOT NULL PRIMARY KEY, modified BIGINT NOT NULL, withdrawn BIGINT, severity BIGINT NOT NULL, malware BIGINT NOT NULL,
    summary TEXT NOT NULL, record TEXT NOT NULL
);

-- Packages of each advisory. `folded` is the name of the package in one normalized form for all
-- ecosystems, which finds more than the exact name. The record has the exact name.
CREATE TABLE advisory_packages (
    ecosystem {text_collate_c} NOT NULL, folded {text_collate_c} NOT NULL, advisory {text_collate_c} NOT NULL REFERENCES advisories ON DELETE CASCADE,
    PRIMARY KEY (ecosystem, folded, advisory)
){without_rowid};
CREATE INDEX advisory_packages_of ON advisory_packages (advisory);

-- Incremented by each change of the tables above. Servers read it to follow the changes.
-- `changed_at` is in ms since 1970.
CREATE TABLE advisory_changes (id BIGINT NOT NULL PRIMARY KEY, number BIGINT NOT NULL, changed_at BIGINT NOT NULL);
