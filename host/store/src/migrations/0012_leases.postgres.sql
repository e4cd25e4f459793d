-- Notifications for servers that answer from memory, for every writer: docs/explanation/leases.md.
-- PostgreSQL only.

-- A row for each server that answers from memory. `renewal` is a new random number each time. It is
-- never compared with a clock of the database.
CREATE TABLE server_leases (id TEXT PRIMARY KEY, renewal BIGINT NOT NULL, lease_ms BIGINT NOT NULL);

-- Changes of transactions: `facts` are written by the functions below, `touched` by the writer.
-- Servers read rows of transactions that they have not read yet. Rows are deleted after a minute.
CREATE TABLE announced_changes (xid xid8 NOT NULL DEFAULT pg_current_xact_id(), facts TEXT, touched BYTEA);
CREATE INDEX announced_changes_by_xid ON announced_changes (xid);
CREATE INDEX announced_changes_foreign ON announced_changes (xid) WHERE facts = '!';

-- Upstream responses that a server is fetching, with the time limit of the claim (ms since 1970 by
-- the database's clock).
CREATE TABLE upstream_fetches (
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, name BYTEA NOT NULL, holder BIGINT NOT NULL,
    until BIGINT NOT NULL, PRIMARY KEY (repository, name)
);

-- A transaction waits here, before its commit, if its process does not declare that it waits for
-- the leases after its commit (an older version, or a person). No lease is granted from now to its
-- end, and existing ones have expired. After that, none is granted until the row "!" is deleted.
CREATE FUNCTION packhouse_outlast_leases() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    longest BIGINT;
BEGIN
    IF coalesce(current_setting('packhouse.announces', true), '') IN ('facts', 'all')
        OR coalesce(current_setting('packhouse.outlasted', true), '') = 'yes' THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(8097864527);
    SELECT max(lease_ms) INTO longest FROM server_leases;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        longest := greatest(longest, 1000);
    END IF;
    IF longest IS NOT NULL THEN
        PERFORM pg_sleep(longest * 1.25 / 1000);
        DELETE FROM server_leases WHERE id IN (SELECT id FROM server_leases FOR UPDATE SKIP LOCKED);
    END IF;
    INSERT INTO announced_changes (facts) VALUES ('!');
    PERFORM set_config('packhouse.outlasted', 'yes', true);
END $$;

-- Each thing is written once in a transaction. Many things become "*", which means everything.
CREATE FUNCTION packhouse_announce(thing TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    told TEXT := coalesce(nullif(current_setting('packhouse.facts', true), ''), ' ');
    what TEXT := thing;
BEGIN
    PERFORM packhouse_outlast_leases();
    IF position(' * ' IN told) > 0 OR position(' ' || what || ' ' IN told) > 0 THEN
        RETURN;
    END IF;
    IF length(told) > 2000 THEN
        what := '*';
    END IF;
    INSERT INTO announced_changes (facts) VALUES (what);
    PERFORM set_config('packhouse.facts', told || what || ' ', true);
END $$;

-- Arguments: the prefix of the thing, and the column whose value follows.
CREATE FUNCTION packhouse_changed() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    IF TG_NARGS = 1 THEN
        PERFORM packhouse_announce(TG_ARGV[0]);
    ELSE
        IF TG_OP <> 'INSERT' THEN
            PERFORM packhouse_announce(TG_ARGV[0] || (to_jsonb(OLD) ->> TG_ARGV[1]));
        END IF;
        IF TG_OP <> 'DELETE' THEN
            PERFORM packhouse_announce(TG_ARGV[0] || (to_jsonb(NEW) ->> TG_ARGV[1]));
        END IF;
    END IF;
    RETURN NULL;
END $$;

-- A group of subscribers affects the access of all its subscribers, that is every key.
CREATE FUNCTION packhouse_reach_changed() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
    of_whom BIGINT := coalesce((to_jsonb(OLD) ->> 'owner'), (to_jsonb(NEW) ->> 'owner'))::BIGINT;
BEGIN
    IF EXISTS (SELECT 1 FROM key_owners WHERE id = of_whom AND kind = 'subscriber') THEN
        PERFORM packhouse_announce('o' || of_whom);
    ELSE
        PERFORM packhouse_announce('K');
    END IF;
    RETURN NULL;
END $$;

-- Everything that a look-up reads, except the last use of a credential. A test compares the columns
-- with those of the look-up.
CREATE TRIGGER announce_new AFTER INSERT ON tokens FOR EACH ROW EXECUTE FUNCTION packhouse_changed('c');
CREATE TRIGGER announce_changed AFTER DELETE OR UPDATE OF id, organization, secret_sha256, name, scope, format, owner, created_by, backing,
    backing_repository, expires_at, ends_at, revoked_at, created_at ON tokens
    FOR EACH ROW EXECUTE FUNCTION packhouse_changed('t', 'id');
CREATE TRIGGER announce_changed AFTER INSERT OR DELETE OR UPDATE ON token_repositories
    FOR EACH ROW EXECUTE FUNCTION packhouse_changed('t', 'token');
CREATE TRIGGER announce_new AFTER INSERT ON access_keys FOR EACH ROW EXECUTE FUNCTION packhouse_changed('c');
CREATE TRIGGER announce_changed AFTER DELETE OR UPDATE OF id, organization, secret_sha256, name, owner, created_by, expires_at, ends_at,
    revoked_at, created_at ON access_keys FOR EACH ROW EXECUTE FUNCTION packhouse_changed('k', 'id');
CREATE TRIGGER announce_changed AFTER DELETE OR UPDATE ON key_owners
    FOR EACH ROW EXECUTE FUNCTION packhouse_changed('o', 'id');
CREATE TRIGGER announce_changed AFTER INSERT OR DELETE OR UPDATE ON key_owner_repositories
    FOR EACH ROW EXECUTE FUNCTION packhouse_reach_changed();
CREATE TRIGGER announce_changed AFTER INSERT OR DELETE OR UPDATE ON subscriber_groups
    FOR EACH ROW EXECUTE FUNCTION packhouse_changed('o', 'subscriber');
CREATE TRIGGER announce_changed AFTER DELETE OR UPDATE ON members
    FOR EACH ROW EXECUTE FUNCTION packhouse_changed('m', 'id');
CREATE TRIGGER announce_changed AFTER INSERT OR DELETE OR UPDATE ON sso_settings
    FOR EACH ROW EXECUTE FUNCTION packhouse_changed('g', 'organization');
CREATE TRIGGER announce_changed AFTER INSERT OR DELETE OR UPDATE ON formats
    FOR EACH ROW EXECUTE FUNCTION packhouse_changed('g', 'organization');
CREATE TRIGGER announce_changed AFTER INSERT OR DELETE OR UPDATE ON organizations
    FOR EACH ROW EXECUTE FUNCTION packhouse_changed('g', 'id');
CREATE TRIGGER announce_new AFTER INSERT OR UPDATE OF name, organization ON repositories
    FOR EACH ROW EXECUTE FUNCTION packhouse_changed('n', 'organization');
CREATE TRIGGER announce_changed AFTER DELETE OR UPDATE OF id, organization, name, format, kind, public, settings, upstream, members,
    settings_revision, created_at, deleted_at ON repositories FOR EACH ROW EXECUTE FUNCTION packhouse_changed('r', 'id');
-- The writer announces its changes itself.
CREATE TRIGGER announce_moved AFTER UPDATE OF revision ON repositories FOR EACH ROW
    WHEN (coalesce(current_setting('packhouse.announces', true), '') <> 'all')
    EXECUTE FUNCTION packhouse_changed('r', 'id');
