-- The creator of a password reset, whose permissions are checked when it is used. Existing resets
-- have an unknown creator, so they are dropped. Resets are deleted together with their member or
-- their creator.

DROP TABLE password_resets;

CREATE TABLE password_resets (
    secret_sha256 {blob} PRIMARY KEY, member BIGINT NOT NULL REFERENCES members ON DELETE CASCADE,
    made_by BIGINT NOT NULL REFERENCES members ON DELETE CASCADE, expires_at BIGINT NOT NULL
);
CREATE INDEX password_resets_by_member ON password_resets (member);
CREATE INDEX password_resets_by_maker ON password_resets (made_by);
CREATE INDEX password_resets_by_end ON password_resets (expires_at);
