-- What servers that answer from memory are told of, whoever writes: docs/LEASES.md. PostgreSQL only.

-- A row for each server that answers from memory. `renewal` is another number each time; nobody judges it by a clock of the database.
CREATE TABLE server_leases (id TEXT PRIMARY KEY, renewal BIGINT NOT NULL, lease_ms BIGINT NOT NULL);

-- What transactions changed: `facts` as the functions below write them, or `touched` as the writer does. A row is read by whoever has not
-- seen its transaction yet, and goes after a minute.
CREATE TABLE announced_changes (xid xid8 NOT NULL DEFAULT pg_current_xact_id(), facts TEXT, touched BYTEA);
CREATE INDEX announced_changes_by_xid ON announced_changes (xid);
CREATE INDEX announced_changes_foreign ON announced_changes (xid) WHERE facts = '!';

-- Answers of upstreams that a server is fetching, until when at most (ms since 1970 by the database's clock).
CREATE TABLE upstream_fetches (
    repository BIGINT NOT NULL REFERENCES repositories ON DELETE CASCADE, name BYTEA NOT NULL, holder BIGINT NOT NULL,
    until BIGINT NOT NULL, PRIMARY KEY (repository, name)
);

-- A transaction whose process does not say that it waits for the leases after its commit (an older version's, a person's) waits here,
-- before it: no lease is granted from now to its end, and those that were have run out. Then none is granted until the row "!" has gone.
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

-- Each thing once a transaction; many things are everything.
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

-- Arguments: what the thing begins with, and the column whose value follows.
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

-- What a group of subscribers reaches is what all its subscribers reach: every key.
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

-- All that a look-up reads, but for when a credential was used last. A test compares the columns with the look-up's.
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
-- The writer tells itself what it touched.
CREATE TRIGGER announce_moved AFTER UPDATE OF revision ON repositories FOR EACH ROW
    WHEN (coalesce(current_setting('packhouse.announces', true), '') <> 'all')
    EXECUTE FUNCTION packhouse_changed('r', 'id');
