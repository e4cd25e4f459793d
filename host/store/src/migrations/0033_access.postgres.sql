-- See 0033_access.sql. A look-up also reads the packages of a token, and the permissions of the
-- teams of its owner.
DROP TRIGGER announce_changed ON tokens;
CREATE TRIGGER announce_changed AFTER DELETE OR UPDATE OF id, organization, secret_sha256, name, scope, format, owner, created_by, backing,
    backing_repository, expires_at, ends_at, revoked_at, created_at, grants, packages ON tokens
    FOR EACH ROW EXECUTE FUNCTION packhouse_changed('t', 'id');
CREATE TRIGGER announce_changed AFTER INSERT OR DELETE OR UPDATE ON team_members
    FOR EACH ROW EXECUTE FUNCTION packhouse_changed('m', 'member');
CREATE TRIGGER announce_changed AFTER DELETE OR UPDATE OF permissions ON teams
    FOR EACH ROW EXECUTE FUNCTION packhouse_changed('g', 'organization');

-- `features` is the number of the newest change of this kind that the server knows: 1 for this
-- migration. A server that does not know the change cannot write the column, so its row has 0.
ALTER TABLE server_leases ADD COLUMN features BIGINT NOT NULL DEFAULT 0;
