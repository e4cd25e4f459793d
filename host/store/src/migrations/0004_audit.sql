-- Audit events with their credential and request. Refusals are counted by `minute` since 1970,
-- where `refused` is the error code and `times` the number. Also the formats that an organization
-- has switched on or off.

ALTER TABLE audit_events ADD COLUMN credential TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_events ADD COLUMN request_id TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_events ADD COLUMN refused TEXT;
ALTER TABLE audit_events ADD COLUMN minute BIGINT;
ALTER TABLE audit_events ADD COLUMN times BIGINT NOT NULL DEFAULT 1;
CREATE UNIQUE INDEX audit_refusals ON audit_events (organization, minute, credential, address, refused)
    WHERE minute IS NOT NULL;

CREATE TABLE formats (
    organization BIGINT NOT NULL REFERENCES organizations, format {text_collate_c} NOT NULL, enabled BIGINT NOT NULL,
    PRIMARY KEY (organization, format)
){without_rowid};
