-- What is known to be wrong with packages, as OSV writes it: brought in by the operator, for all organizations. `modified` and `withdrawn` are
-- the record's own times in ms since 1970, `severity` 0 (nobody says) to 4 (critical), `record` its JSON.
CREATE TABLE advisories (
    id {text_collate_c} NOT NULL PRIMARY KEY, modified BIGINT NOT NULL, withdrawn BIGINT, severity BIGINT NOT NULL, malware BIGINT NOT NULL,
    summary TEXT NOT NULL, record TEXT NOT NULL
);

-- Which packages each is about. `folded` is the package's name in one spelling for all ecosystems, which finds more than is meant: the
-- record says how the package is spelt.
CREATE TABLE advisory_packages (
    ecosystem {text_collate_c} NOT NULL, folded {text_collate_c} NOT NULL, advisory {text_collate_c} NOT NULL REFERENCES advisories ON DELETE CASCADE,
    PRIMARY KEY (ecosystem, folded, advisory)
){without_rowid};
CREATE INDEX advisory_packages_of ON advisory_packages (advisory);

-- Grows with each change of the above: what servers look at to follow. `changed_at` is in ms since 1970.
CREATE TABLE advisory_changes (id BIGINT NOT NULL PRIMARY KEY, number BIGINT NOT NULL, changed_at BIGINT NOT NULL);
