//! Servers of one PostgreSQL that answer from memory. Once a server has acknowledged a change, no
//! server answers with an older value.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use packhouse_store::{
    AuditEvent, Dependencies, Expectation, LookUp, MemberChange, MemberRow, MembershipSource, NewTeam,
    NewToken, Scope, Store, TeamChange, TeamRow, TokenRow,
};
use sqlx::{Connection as _, PgConnection};

use crate::support::{World, applied, commit, member, postgres, put, repository, wait_for_lease};

const LEASE: Duration = Duration::from_secs(1);
/// Limit for the number of statements that a store runs on its own after its start.
const ITS_OWN: u64 = 5;

/// Several servers with a lease; `None` if PostgreSQL is not installed.
async fn servers<const N: usize>() -> Option<(World, [Store; N])> {
    let world = World::postgres().await?;
    wait_for_lease(&world.store).await;
    let mut others = Vec::new();
    for _ in 0..N {
        let store = Store::open(world.config.clone()).await.unwrap();
        wait_for_lease(&store).await;
        others.push(store);
    }
    Some((world, others.try_into().unwrap_or_else(|_| unreachable!())))
}

fn secret(number: u64) -> [u8; 32] {
    let mut secret = [0; 32];
    secret[..8].copy_from_slice(&number.to_be_bytes());
    secret
}

fn new_token(world: &World, number: u64) -> NewToken {
    NewToken {
        secret_sha256: secret(number),
        name: "ci".to_owned(),
        scope: Scope { read: true, write: false },
        format: "generic".to_owned(),
        owner: None,
        created_by: "owner@localhost".to_owned(),
        backing: None,
        backing_repository: None,
        repositories: vec![world.repository],
        expires_at: None,
        packages: None,
    }
}

async fn token(world: &World, number: u64) -> TokenRow {
    world.store.create_token(world.organization, new_token(world, number), None).await.unwrap()
}

async fn look_up(store: &Store, world: &World, number: u64) -> std::sync::Arc<LookUp> {
    store.look_up(world.organization, "main", Some(&secret(number))).await.unwrap()
}

/// Runs `of`; returns the number of statements that the store ran meanwhile.
async fn statements(store: &Store, of: impl AsyncFnOnce()) -> u64 {
    let before = store.statements();
    of().await;
    store.statements() - before
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_is_known_everywhere_when_the_call_returns() {
    let Some((world, [two, three])) = servers().await else { return };
    let mut times = Vec::new();
    for number in 0..100 {
        // The look-up before the token exists makes the server cache its absence.
        assert!(look_up(&two, &world, number).await.token.is_none());
        let made = token(&world, number).await;
        for store in [&world.store, &two, &three] {
            let found = look_up(store, &world, number).await;
            assert!(found.reaches && found.token.as_ref().unwrap().revoked_at.is_none());
        }
        let begun = Instant::now();
        assert!(world.store.revoke_token(world.organization, made.id, 9, None).await.unwrap());
        times.push(begun.elapsed());
        for store in [&world.store, &two, &three] {
            assert_eq!(look_up(store, &world, number).await.token.as_ref().unwrap().revoked_at, Some(9));
        }
    }
    times.sort();
    println!("a revocation took {:?}, at most {:?}", times[times.len() / 2], times[times.len() - 1]);
    assert!(times[times.len() / 2] < LEASE / 2, "no revocation waits for a lease: {times:?}");
    two.close().await;
    three.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_an_owners_access_is_known_everywhere_when_the_call_returns() {
    let Some((world, [two])) = servers().await else { return };
    let (store, here) = (&world.store, world.organization);
    let owner = store.create_member(here, member("a@localhost"), None).await.unwrap().unwrap();
    let new = NewToken { owner: Some(owner.id), ..new_token(&world, 1) };
    store.create_token(here, new, None).await.unwrap();
    let team = |permissions: &str| NewTeam {
        name: "one".to_owned(),
        description: String::new(),
        permissions: permissions.to_owned(),
        external_groups: vec!["group".to_owned()],
        external_id: None,
    };
    let read = store.create_team(here, team("{\"a\":1}"), None).await.unwrap().unwrap();
    // Each look-up caches its answer, which the next change must drop.
    let known = async || -> MemberRow {
        let [one, other] = [look_up(store, &world, 1).await, look_up(&two, &world, 1).await];
        assert_eq!(one.owner, other.owner);
        (**other.owner.as_ref().unwrap()).clone()
    };
    let teams = async || known().await.team_permissions;
    let set = async |server: &Store, read: &TeamRow, permissions: &str| match server
        .set_team(read, team(permissions), None)
        .await
        .unwrap()
    {
        TeamChange::Done(row) => *row,
        other => panic!("{other:?}"),
    };
    for _ in 0..10 {
        assert_eq!(teams().await, "");
        let added = store.add_team_member(&read, owner.id, MembershipSource::Manual, None).await.unwrap();
        assert_eq!((added, teams().await.as_str()), (MemberChange::Done, "[{\"a\":1}]"));
        assert!(two.remove_team_member(&read, owner.id, None).await.unwrap());
        assert_eq!(teams().await, "");
        assert!(two.follow_external_groups(&owner, &["group".to_owned()], None).await.unwrap());
        let changed = set(store, &read, "{}").await;
        assert_eq!(teams().await, "[{}]");
        set(&two, &changed, "{\"a\":1}").await;
        assert!(store.follow_external_groups(&owner, &[], None).await.unwrap());
        for active in [false, true] {
            let changed = store.set_member_active(&owner, active, |_| false, None).await.unwrap();
            assert_eq!((changed, known().await.active), (MemberChange::Done, active));
        }
    }
    let added = two.add_team_member(&read, owner.id, MembershipSource::Manual, None).await.unwrap();
    assert_eq!((added, teams().await.as_str()), (MemberChange::Done, "[{\"a\":1}]"));
    assert!(store.delete_team(here, read.id, None).await.unwrap());
    assert_eq!(teams().await, "");
    two.close().await;
}

/// Neither a lease nor an idle connection of an earlier version is overlooked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_an_earlier_version_is_noticed() {
    let world = World::sqlite().await;
    assert!(world.store.servers_know_access().await.unwrap());
    let Some((world, [two])) = servers().await else { return };
    let sql = |sql: &str| postgres::shared().unwrap().sql(&world.config.database_url, sql);
    let known = async || two.servers_know_access().await.unwrap();
    assert!(known().await);
    // An earlier version does not write the column `features`.
    sql("INSERT INTO server_leases (id, renewal, lease_ms) VALUES ('older', 1, 1000)");
    assert!(!known().await);
    sql("DELETE FROM server_leases WHERE id = 'older'");
    assert!(known().await);
    let url = format!("{}?application_name=packhouse", world.config.database_url);
    let idle = PgConnection::connect(&url).await.unwrap();
    assert!(!known().await);
    idle.close().await.unwrap();
    let begun = Instant::now();
    while !known().await {
        assert!(begun.elapsed() < LEASE * 10, "the connection is closed");
        tokio::task::yield_now().await;
    }
    two.close().await;
}

/// A server revokes a token and publishes, and ends before it notifies any other server. Its client
/// then uses another server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_change_is_known_everywhere_when_the_call_returns() {
    let Some((world, [two, three])) = servers().await else { return };
    // This transaction states that it announces its change, but sends no notice.
    let gone = |sql: String| {
        let sql = format!("SELECT set_config('packhouse.announces', 'facts', false); {sql}");
        postgres::shared().unwrap().sql(&world.config.database_url, &sql);
    };
    for number in 0..30 {
        let made = token(&world, number).await;
        let before = look_up(&three, &world, number).await;
        assert!(before.token.as_ref().unwrap().revoked_at.is_none());
        gone(format!("UPDATE tokens SET revoked_at = 9 WHERE id = {}", made.id));
        assert!(!two.revoke_token(world.organization, made.id, 10, None).await.unwrap());
        assert_eq!(look_up(&three, &world, number).await.token.as_ref().unwrap().revoked_at, Some(9));

        let repository = world.repository;
        gone(format!("UPDATE repositories SET revision = revision + 1 WHERE id = {}", repository.0));
        let was = before.repository.as_ref().unwrap().revision;
        // Every second time, the caller passes the revision that it found.
        let found = (number % 2 == 0).then_some(was + 1);
        two.settle_repository(repository, found).await.unwrap();
        let is = look_up(&three, &world, number).await;
        assert!(is.repository.as_ref().unwrap().revision > was);
        // This server's own commit is announced together with every earlier change, so it has
        // nothing left to settle.
        let mine = commit([put("mine", "", Expectation::Anything)]);
        let revision = applied(two.commit(repository, mine).await.unwrap());
        let again = statements(&two, async || {
            for _ in 0..10 {
                two.settle_repository(repository, Some(revision)).await.unwrap();
                two.settle_repository(repository, Some(was + 1)).await.unwrap();
            }
        });
        assert!(again.await <= ITS_OWN);
    }
    two.close().await;
    three.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_runs_without_a_change_and_publishes_leave_the_rest() {
    let Some((world, [two])) = servers().await else { return };
    token(&world, 1).await;
    look_up(&two, &world, 1).await;
    let ran = statements(&two, async || {
        for _ in 0..1000 {
            look_up(&two, &world, 1).await;
        }
    });
    assert!(ran.await <= ITS_OWN);
    let mut all = 0;
    // A publish by either server changes the revision and nothing else.
    for number in 0..20 {
        let key = format!("b/{number}");
        let (here, there) = if number % 2 == 0 { (&world.store, &two) } else { (&two, &world.store) };
        look_up(there, &world, 1).await;
        let change = put(&key, "", Expectation::Anything);
        let revision = applied(here.commit(world.repository, commit([change])).await.unwrap());
        let ran = statements(there, async || {
            let found = look_up(there, &world, 1).await;
            assert_eq!(found.repository.as_ref().unwrap().revision, revision);
        });
        all += ran.await;
    }
    assert!(all <= ITS_OWN, "{all}");
    // A change that does not affect look-ups drops nothing from memory.
    let event = AuditEvent { organization: world.organization, ..AuditEvent::default() };
    world.store.audit(event).await.unwrap();
    two.token_used(look_up(&two, &world, 1).await.token.as_ref().unwrap().id, 5);
    two.write_token_use().await.unwrap();
    let again = statements(&two, async || {
        for _ in 0..20 {
            look_up(&two, &world, 1).await;
        }
    });
    assert!(again.await <= ITS_OWN);
    two.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publish_leaves_unrelated_reads_on_all_servers() {
    let Some((world, [two])) = servers().await else { return };
    let mut on_a = Dependencies::default();
    on_a.on_record("a/1");
    let first = world.put("a/1", "1").await;
    let publish = async |store: &Store, key: String| {
        applied(store.commit(world.repository, commit([put(&key, "", Expectation::Anything)])).await.unwrap())
    };
    let mut last = first;
    for number in 0..20 {
        let store = if number % 2 == 0 { &two } else { &world.store };
        last = publish(store, format!("b/{number}")).await;
        for store in [&world.store, &two] {
            assert!(store.unchanged(world.repository, first, last, &on_a), "{number}");
        }
    }
    // The publishes run concurrently, so that notices arrive out of order.
    let beside = (0..200).map(|number| {
        let store = if number % 2 == 0 { &two } else { &world.store };
        publish(store, format!("c/{number}"))
    });
    last = last.max(*futures::future::join_all(beside).await.iter().max().unwrap());
    for store in [&world.store, &two] {
        let current = store.look_up(world.organization, "main", None).await.unwrap();
        assert_eq!(current.repository.as_ref().unwrap().revision, last);
        assert!(store.unchanged(world.repository, first, last, &on_a));
    }
    let touched = publish(&two, "a/1".to_owned()).await;
    for store in [&world.store, &two] {
        assert!(!store.unchanged(world.repository, last, touched, &on_a));
    }
    two.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_server_is_waited_for_once() {
    let Some((world, [two])) = servers().await else { return };
    let rows =
        || postgres::shared().unwrap().sql(&world.config.database_url, "SELECT count(*) FROM server_leases");
    assert_eq!(rows(), "2");
    two.close().await;
    assert_eq!(rows(), "1", "a closed store ends its lease");
    // A server that ended without closing: nobody renews its row.
    let ghost = "INSERT INTO server_leases VALUES ('ghost', 1, 1000)";
    postgres::shared().unwrap().sql(&world.config.database_url, ghost);
    let begun = Instant::now();
    world.put("a", "1").await;
    let first = begun.elapsed();
    assert!(first < LEASE * 2, "{first:?}");
    while rows() != "1" {
        assert!(begun.elapsed() < LEASE * 10);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let begun = Instant::now();
    for _ in 0..10 {
        world.put("a", "1").await;
    }
    assert!(begun.elapsed() < LEASE / 2, "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_without_announcements_waits_for_the_leases_and_ends_them() {
    let Some((world, [two])) = servers().await else { return };
    let made = token(&world, 1).await;
    for store in [&world.store, &two] {
        assert!(look_up(store, &world, 1).await.token.as_ref().unwrap().revoked_at.is_none());
    }
    let url = world.config.database_url.clone();
    let sql = format!("UPDATE tokens SET revoked_at = 9 WHERE id = {}", made.id);
    let by_hand = tokio::task::spawn_blocking(move || postgres::shared().unwrap().sql(&url, &sql));
    let begun = Instant::now();
    while !by_hand.is_finished() {
        look_up(&two, &world, 1).await;
        tokio::task::yield_now().await;
    }
    assert!(begun.elapsed() >= LEASE, "{:?}", begun.elapsed());
    by_hand.await.unwrap();
    for store in [&world.store, &two] {
        assert_eq!(look_up(store, &world, 1).await.token.as_ref().unwrap().revoked_at, Some(9));
        assert!(!store.has_lease(), "each request queries the database for a while");
    }
    // At the second change no server has a lease, so the writer does not wait.
    let begun = Instant::now();
    let url = world.config.database_url.clone();
    let moved = format!("UPDATE repositories SET revision = revision + 1 WHERE id = {}", world.repository);
    postgres::shared().unwrap().sql(&url, &moved);
    assert!(begun.elapsed() < LEASE, "{:?}", begun.elapsed());
    let revision = world.put("a", "1").await;
    let found = look_up(&two, &world, 1).await;
    assert_eq!(found.repository.as_ref().unwrap().revision, revision);
    two.close().await;
}

/// Columns of `teams` that no look-up reads, or that never change.
const TEAM_COLUMNS_OUTSIDE: [&str; 7] =
    ["created_at", "description", "external_groups", "external_id", "id", "name", "organization"];

/// A change of any column of a look-up is announced, except the time of a credential's last use.
/// The pinned component of a repository is not part of a look-up; a separate number tells servers
/// that it changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_column_of_a_look_up_is_announced() {
    let Some(world) = World::postgres().await else { return };
    let sql = |sql: &str| postgres::shared().unwrap().sql(&world.config.database_url, sql);
    let columns = |sql: String| -> BTreeMap<String, Vec<String>> {
        let mut of: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in sql.lines() {
            let (table, column) = line.split_once('|').unwrap();
            of.entry(table.to_owned()).or_default().push(column.to_owned());
        }
        of
    };
    let tables = "'tokens', 'token_repositories', 'access_keys', 'key_owners', 'key_owner_repositories', \
        'subscriber_groups', 'members', 'team_members', 'teams', 'sso_settings', 'formats', 'organizations', \
        'repositories'";
    let there = columns(sql(&format!(
        "SELECT table_name, column_name FROM information_schema.columns \
         WHERE table_schema = 'public' AND table_name IN ({tables}) ORDER BY 1, 2"
    )));
    assert_eq!(there.len(), 13);
    let whole = sql(&format!(
        "SELECT DISTINCT event_object_table FROM information_schema.triggers t WHERE event_manipulation = 'UPDATE' \
         AND trigger_name LIKE 'announce%' AND event_object_table IN ({tables}) AND NOT EXISTS (SELECT 1 FROM \
         information_schema.triggered_update_columns c WHERE c.trigger_name = t.trigger_name \
         AND c.event_object_table = t.event_object_table)"
    ));
    let announced = columns(sql(&format!(
        "SELECT DISTINCT event_object_table, event_object_column FROM information_schema.triggered_update_columns \
         WHERE trigger_name LIKE 'announce%' AND event_object_table IN ({tables}) ORDER BY 1, 2"
    )));
    for (table, columns) in there {
        if whole.lines().any(|line| line == table) {
            continue;
        }
        let announced = &announced[&table];
        let missing: Vec<_> = columns.iter().filter(|column| !announced.contains(column)).collect();
        let allowed = match table.as_str() {
            "repositories" => vec!["plugin"],
            "teams" => TEAM_COLUMNS_OUTSIDE.to_vec(),
            _ => vec!["last_used_at"],
        };
        assert_eq!(missing, allowed, "{table}");
    }
}

/// The current program version announces all of its changes. Servers therefore do not wait after a
/// change; they wait only after the unannounced changes of an older version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn this_version_announces_all_its_changes() {
    let Some((world, [two])) = servers().await else { return };
    let made = token(&world, 1).await;
    let other = two.create_repository(world.organization, repository("other"), None).await.unwrap().unwrap();
    for store in [&world.store, &two] {
        assert!(store.look_up(world.organization, "other", None).await.unwrap().repository.is_some());
    }
    assert!(two.delete_repository(world.organization, other.id, None).await.unwrap());
    for store in [&world.store, &two] {
        assert!(store.look_up(world.organization, "other", None).await.unwrap().repository.is_none());
    }
    world.store.revoke_token(world.organization, made.id, 9, None).await.unwrap();
    world.put("a", "1").await;
    let foreign = "SELECT count(*) FROM announced_changes WHERE facts = '!'";
    assert_eq!(postgres::shared().unwrap().sql(&world.config.database_url, foreign), "0");
    two.close().await;
}
