-- Who made a password reset, whose rights are judged when it is used. Those of which that is not known have ended; so have the ones that
-- a member's deletion takes along, be it the maker's.

DROP TABLE password_resets;

CREATE TABLE password_resets (
    secret_sha256 {blob} PRIMARY KEY, member BIGINT NOT NULL REFERENCES members ON DELETE CASCADE,
    made_by BIGINT NOT NULL REFERENCES members ON DELETE CASCADE, expires_at BIGINT NOT NULL
);
CREATE INDEX password_resets_by_member ON password_resets (member);
CREATE INDEX password_resets_by_maker ON password_resets (made_by);
CREATE INDEX password_resets_by_end ON password_resets (expires_at);
