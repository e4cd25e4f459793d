-- See 0022_trusted_publishers.sql. A look-up also reads the grants of a token.
DROP TRIGGER announce_changed ON tokens;
CREATE TRIGGER announce_changed AFTER DELETE OR UPDATE OF id, organization, secret_sha256, name, scope, format, owner, created_by, backing,
    backing_repository, expires_at, ends_at, revoked_at, created_at, grants ON tokens
    FOR EACH ROW EXECUTE FUNCTION packhouse_changed('t', 'id');
