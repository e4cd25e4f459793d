//! Organizations, members, repositories, tokens, and the look-ups of a request.

use packhouse_store::{
    AuditEvent, AuditFilter, AuditRow, Commit, ConfirmationRow, Expectation, MemberChange, MemberRow,
    NewToken, Outcome, Refusal, Rotation, Scope, SessionRow, Store, now_ms,
};

use crate::support::{World, commit, fewest_statements, in_both, member, organization, put, repository};

in_both! {
    one_first_organization, hosts_are_unique, members, a_deleted_members_credentials_stop_working, sessions,
    confirmations_are_used_once, repositories, a_deleted_repository_is_empty, settings_are_compared_and_set,
    tokens, rotation_is_compare_and_set, a_look_up_is_one_statement, a_groups_members_are_looked_up_with_it,
    events_are_written_with_the_change, a_commit_brings_its_event, refusals_are_counted_by_minute,
    a_note_survives_a_cancelled_caller, old_events_are_forgotten, formats_are_switched,
    token_use_is_written_later,
}

fn event(world: &World, action: &str) -> AuditEvent {
    AuditEvent {
        organization: world.organization,
        actor: "owner@localhost".to_owned(),
        action: action.to_owned(),
        subject: "subject".to_owned(),
        address: "127.0.0.1".to_owned(),
        ..AuditEvent::default()
    }
}

async fn owner(world: &World) -> MemberRow {
    world.store.members_by_email("owner@localhost").await.unwrap().remove(0)
}

fn token(world: &World, secret: u8, owner: Option<&MemberRow>) -> NewToken {
    NewToken {
        secret_sha256: [secret; 32],
        name: "ci".to_owned(),
        scope: Scope { read: true, write: false },
        format: "generic".to_owned(),
        owner: owner.map(|owner| owner.id),
        created_by: "owner@localhost".to_owned(),
        backing: owner.is_none().then(|| "org".to_owned()),
        backing_repository: None,
        repositories: vec![world.repository],
        expires_at: Some(i64::MAX),
        packages: None,
    }
}

async fn one_first_organization(world: &World) {
    assert!(world.store.bootstrap(organization("second"), member("x@localhost")).await.unwrap().is_none());
    assert_eq!(world.store.organizations().await.unwrap().len(), 1);
    let second = world.store.create_organization(organization("second"), None).await.unwrap().unwrap();
    assert!(world.store.create_organization(organization("second"), None).await.unwrap().is_none());
    assert!(second.id > world.organization, "the organization with the lowest id manages the server");
    assert_eq!(world.store.first_organization().await.unwrap(), Some(world.organization));
}

async fn hosts_are_unique(world: &World) {
    let other = world.store.create_organization(organization("other"), None).await.unwrap().unwrap();
    let (url, host) = (Some("https://p.example"), Some("p.example"));
    assert!(world.store.set_base_url(world.organization, url, host, None).await.unwrap());
    assert!(!world.store.set_base_url(other.id, url, host, None).await.unwrap());
    assert!(world.store.set_base_url(other.id, None, None, None).await.unwrap());
    let found = world.store.organization_by_host("p.example").await.unwrap().unwrap();
    assert_eq!(found.id, world.organization);
    assert!(world.store.organization_by_host("q.example").await.unwrap().is_none());
}

async fn members(world: &World) {
    let store = &world.store;
    let made = store.create_member(world.organization, member("a@localhost"), None).await.unwrap().unwrap();
    assert!(store.create_member(world.organization, member("a@localhost"), None).await.unwrap().is_none());
    let set = store.set_member_permissions(&made, "{\"x\":1}", |_| false, None).await.unwrap();
    assert_eq!(set, MemberChange::Done);
    let found = store.find_member(world.organization, made.id).await.unwrap().unwrap();
    assert_eq!(found, MemberRow { permissions: "{\"x\":1}".to_owned(), ..made.clone() });
    let page = store.list_members(world.organization, None, 1).await.unwrap();
    let rest = store.list_members(world.organization, Some(page[0].id), 10).await.unwrap();
    assert_eq!((page.len(), rest.len()), (1, 1));
    assert!(!format!("{found:?}").contains("argon2id"));
}

async fn a_deleted_members_credentials_stop_working(world: &World) {
    let store = &world.store;
    let gone = store.create_member(world.organization, member("a@localhost"), None).await.unwrap().unwrap();
    store.create_session(session(&gone, [1; 32], i64::MAX), None).await.unwrap();
    let token = store.create_token(world.organization, token(world, 1, Some(&gone)), None).await.unwrap();
    assert_eq!(store.delete_member(&gone, |_| false, None).await.unwrap(), MemberChange::Done);
    assert_eq!(store.delete_member(&gone, |_| false, None).await.unwrap(), MemberChange::Changed);
    assert!(store.find_session(&[1; 32], 0).await.unwrap().is_none());
    let token = store.find_token(world.organization, token.id).await.unwrap().unwrap();
    assert!(token.revoked_at.is_some());
}

fn session(member: &MemberRow, secret_sha256: [u8; 32], expires_at: i64) -> SessionRow {
    SessionRow {
        secret_sha256,
        organization: member.organization,
        member: member.id,
        created_at: 1,
        expires_at,
    }
}

async fn sessions(world: &World) {
    let (store, owner) = (&world.store, owner(world).await);
    let until = now_ms() + 1_000_000;
    store.create_session(session(&owner, [1; 32], until), None).await.unwrap();
    let (found, member) = store.find_session(&[1; 32], until - 1).await.unwrap().unwrap();
    assert_eq!((found.member, member), (owner.id, owner.clone()));
    assert!(store.find_session(&[1; 32], until).await.unwrap().is_none());
    assert!(store.find_session(&[2; 32], 0).await.unwrap().is_none());
    assert!(store.delete_session(&[1; 32], None).await.unwrap());
    assert!(!store.delete_session(&[1; 32], None).await.unwrap());
    store.create_session(session(&owner, [3; 32], until), None).await.unwrap();
    assert!(store.set_member_password(world.organization, owner.id, "new", None).await.unwrap());
    assert!(store.find_session(&[3; 32], 0).await.unwrap().is_none());
}

async fn confirmations_are_used_once(world: &World) {
    let owner = owner(world).await;
    let confirm = |secret: u8| ConfirmationRow {
        secret_sha256: [secret; 32],
        organization: world.organization,
        member: owner.id,
        action: "create_token".to_owned(),
        expires_at: i64::MAX,
    };
    world.store.create_confirmation(confirm(1)).await.unwrap();
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let (store, member) = (world.store.clone(), owner.id);
            tokio::spawn(async move {
                store.spend_confirmation(&[1; 32], member, "create_token", 0).await.unwrap()
            })
        })
        .collect();
    let mut spent = 0;
    for task in tasks {
        spent += usize::from(task.await.unwrap());
    }
    assert_eq!(spent, 1);
    world.store.create_confirmation(confirm(2)).await.unwrap();
    assert!(!world.store.spend_confirmation(&[2; 32], owner.id, "rotate_token", 0).await.unwrap());
    assert!(!world.store.spend_confirmation(&[2; 32], owner.id, "create_token", i64::MAX).await.unwrap());
    assert!(world.store.spend_confirmation(&[2; 32], owner.id, "create_token", 0).await.unwrap());
}

async fn repositories(world: &World) {
    let store = &world.store;
    assert!(store.create_repository(world.organization, repository("main"), None).await.unwrap().is_none());
    let other = world.another("other").await;
    let mut group = repository("group");
    group.members = vec![other, world.repository];
    let group = store.create_repository(world.organization, group, None).await.unwrap().unwrap();
    let found = store.find_repository(world.organization, group.id).await.unwrap().unwrap();
    assert_eq!((&found, found.members.as_slice()), (&group, [other, world.repository].as_slice()));
    assert_eq!(store.groups_of(world.organization, other).await.unwrap(), [group.id]);
    assert_eq!(store.groups_of(world.organization, group.id).await.unwrap(), []);
    let both = store.find_repositories(world.organization, &[other, world.repository]).await.unwrap();
    assert_eq!(both.iter().map(|row| row.id).collect::<Vec<_>>(), [other, world.repository]);
    let first = store.list_repositories(world.organization, None, 2).await.unwrap();
    let rest = store.list_repositories(world.organization, Some(first[1].id), 2).await.unwrap();
    assert_eq!((first.len(), rest.len()), (2, 1));
}

async fn a_deleted_repository_is_empty(world: &World) {
    world.put("key", "value").await;
    assert!(world.store.delete_repository(world.organization, world.repository, None).await.unwrap());
    assert!(!world.store.delete_repository(world.organization, world.repository, None).await.unwrap());
    let change = commit([put("key", "value", Expectation::Anything)]);
    assert!(world.store.commit(world.repository, change).await.is_err());
    assert_eq!(world.store.remove_deleted().await.unwrap(), 1);
    assert_eq!(world.value("key").await, None);
}

async fn settings_are_compared_and_set(world: &World) {
    let mut row = world.store.find_repository(world.organization, world.repository).await.unwrap().unwrap();
    row.public = true;
    row.settings = "{\"redeploy\":\"identical\"}".into();
    assert!(world.store.update_repository(&row, false, None).await.unwrap());
    assert!(!world.store.update_repository(&row, false, None).await.unwrap());
    let read = world.store.find_repository(world.organization, world.repository).await.unwrap().unwrap();
    assert_eq!(
        (read.public, &read.settings, read.settings_revision),
        (true, &row.settings, row.settings_revision + 1)
    );
}

async fn tokens(world: &World) {
    let (store, owner) = (&world.store, owner(world).await);
    let made = store.create_token(world.organization, token(world, 1, Some(&owner)), None).await.unwrap();
    let key = store.create_token(world.organization, token(world, 2, None), None).await.unwrap();
    assert_eq!(store.find_token(world.organization, made.id).await.unwrap().unwrap(), made);
    let own = store.list_tokens(world.organization, Some(owner.id), None, None, 10).await.unwrap();
    assert_eq!(own, std::slice::from_ref(&made));
    let keys = store.list_tokens(world.organization, None, Some("org"), None, 10).await.unwrap();
    assert_eq!(keys, [key]);
    assert!(store.revoke_token(world.organization, made.id, 5, None).await.unwrap());
    assert!(!store.revoke_token(world.organization, made.id, 6, None).await.unwrap());
    assert_eq!(store.find_token(world.organization, made.id).await.unwrap().unwrap().revoked_at, Some(5));
}

async fn rotation_is_compare_and_set(world: &World) {
    let (store, owner) = (&world.store, owner(world).await);
    let old = store.create_token(world.organization, token(world, 1, Some(&owner)), None).await.unwrap();
    let tasks: Vec<_> = (0..10)
        .map(|n| {
            let (store, old, successor) = (store.clone(), old.clone(), token(world, 10 + n, Some(&owner)));
            tokio::spawn(async move { store.rotate_token(&old, 100, false, successor, None).await.unwrap() })
        })
        .collect();
    let mut rotated = 0;
    for task in tasks {
        rotated += usize::from(matches!(task.await.unwrap(), Rotation::Rotated(_)));
    }
    assert_eq!(rotated, 1);
    assert_eq!(store.list_tokens(world.organization, Some(owner.id), None, None, 50).await.unwrap().len(), 2);
    let next = store.create_token(world.organization, token(world, 30, Some(&owner)), None).await.unwrap();
    store.rotate_token(&next, 100, true, token(world, 31, Some(&owner)), None).await.unwrap();
    let next = store.find_token(world.organization, next.id).await.unwrap().unwrap();
    assert_eq!((next.ends_at, next.revoked_at), (Some(100), Some(100)), "it has ended by every clock");
    let mut unknown = old.clone();
    unknown.id = packhouse_store::TokenId(1);
    assert_eq!(
        store.rotate_token(&unknown, 1, false, token(world, 2, None), None).await.unwrap(),
        Rotation::Gone
    );
}

async fn ran(
    store: &Store,
    world: &World,
    repository: &str,
    secret: Option<&[u8; 32]>,
) -> (std::sync::Arc<packhouse_store::LookUp>, u64) {
    let before = store.statements();
    let answer = store.look_up(world.organization, repository, secret).await.unwrap();
    (answer, store.statements() - before)
}

async fn a_look_up_is_one_statement(world: &World) {
    let (store, owner) = (&world.store, owner(world).await);
    let token = store.create_token(world.organization, token(world, 1, Some(&owner)), None).await.unwrap();
    world.another("other").await;
    // The store also runs statements of its own after its start, but not during all of these
    // repetitions.
    let mut statements = Vec::new();
    for name in ["one", "two", "three", "four", "five"] {
        statements.push(ran(store, world, name, Some(&[1; 32])).await.1);
    }
    assert_eq!(statements.iter().min(), Some(&1), "{statements:?}");
    let (found, _) = ran(store, world, "main", Some(&[1; 32])).await;
    assert_eq!(found.repository.as_ref().unwrap().id, world.repository);
    assert_eq!(found.token.as_ref().unwrap().id, token.id);
    assert_eq!((found.owner.as_deref().unwrap(), found.reaches), (&owner, true));
    // The store learns of changes without a statement, so a repeated look-up can run none. SQLite
    // reports whether anything was written, PostgreSQL servers notify each other, and the store
    // knows its own commits.
    world.wait_for_lease().await;
    let mut statements = Vec::new();
    for number in 0..5 {
        let revision = world.put("key", &number.to_string()).await;
        for _ in 0..2 {
            let (found, ran) = ran(store, world, "main", Some(&[1; 32])).await;
            assert_eq!(found.repository.as_ref().unwrap().revision, revision);
            statements.push(ran);
        }
    }
    assert_eq!(statements.iter().min(), Some(&0), "{statements:?}");
    store.revoke_token(world.organization, token.id, 9, None).await.unwrap();
    let (found, _) = ran(store, world, "main", Some(&[1; 32])).await;
    assert_eq!(found.token.as_ref().unwrap().revoked_at, Some(9));
    let (found, _) = ran(store, world, "other", Some(&[1; 32])).await;
    assert!(!found.reaches && found.token.is_some());
    let (found, _) = ran(store, world, "none", Some(&[2; 32])).await;
    assert!(found.repository.is_none() && found.token.is_none() && found.owner.is_none() && !found.reaches);
    assert!(ran(store, world, "main", None).await.0.repository.is_some());
}

async fn a_groups_members_are_looked_up_with_it(world: &World) {
    let (store, organization) = (&world.store, world.organization);
    let token = store.create_token(organization, token(world, 1, None), None).await.unwrap();
    let other = world.another("other").await;
    let gone = packhouse_store::RepositoryId(1);
    let group = packhouse_store::NewRepository {
        kind: "group".to_owned(),
        members: vec![other, gone, world.repository],
        ..repository("group")
    };
    store.create_repository(organization, group, None).await.unwrap().unwrap();
    world.wait_for_lease().await;
    let mut statements = Vec::new();
    for number in 0..5 {
        let revision = world.put("key", &number.to_string()).await;
        ran(store, world, "group", Some(&[1; 32])).await;
        let (found, ran) = ran(store, world, "group", Some(&[1; 32])).await;
        let members: Vec<_> = found.members.iter().map(|one| (one.row.id, one.reaches)).collect();
        assert_eq!(members, [(other, false), (world.repository, true)]);
        assert_eq!(found.members[1].row.revision, revision);
        statements.push(ran);
    }
    assert_eq!(statements.iter().min(), Some(&0), "{statements:?}");
    let names = ["other", "absent", "main", "a\0b"].map(str::to_owned);
    let facts = store.look_up(organization, "main", Some(&token.secret_sha256)).await.unwrap();
    let mut found = store.look_up_others(organization, &names, &facts).await.unwrap();
    found.sort_by(|one, two| one.row.name.cmp(&two.row.name));
    let found: Vec<_> = found.iter().map(|one| (one.row.name.as_str(), one.reaches)).collect();
    assert_eq!(found, [("main", true), ("other", false)]);
    assert!(store.look_up_others(organization, &[], &facts).await.unwrap().is_empty());
    assert_eq!(store.agreed("a", "1").await.unwrap(), "1");
    assert_eq!(store.agreed("a", "2").await.unwrap(), "1");
    assert_eq!(store.replace_fact("a", Some("3")).await.unwrap().as_deref(), Some("1"));
    assert_eq!(store.agreed("a", "2").await.unwrap(), "3");
    assert_eq!(store.replace_fact("a", None).await.unwrap().as_deref(), Some("3"));
    assert_eq!(store.replace_fact("a", None).await.unwrap(), None);
}

async fn events_are_written_with_the_change(world: &World) {
    let store = &world.store;
    let made = store
        .create_repository(world.organization, repository("new"), Some(event(world, "one")))
        .await
        .unwrap();
    assert!(made.is_some());
    let again = store
        .create_repository(world.organization, repository("new"), Some(event(world, "none")))
        .await
        .unwrap();
    assert!(again.is_none());
    store.audit(event(world, "two")).await.unwrap();
    let events = store.audit_events(world.organization, &AuditFilter::default(), None, 10).await.unwrap();
    let mut actions: Vec<_> = events.iter().map(|row| row.event.action.as_str()).collect();
    actions.sort_unstable();
    assert_eq!(actions, ["one", "two"]);
    let older = store
        .audit_events(world.organization, &AuditFilter::default(), Some(events[0].id), 10)
        .await
        .unwrap();
    assert_eq!(older, events[1..]);
}

async fn events(world: &World, filter: AuditFilter) -> Vec<AuditRow> {
    world.store.audit_events(world.organization, &filter, None, 100).await.unwrap()
}

async fn a_commit_brings_its_event(world: &World) {
    let audited = |expect, action: &str| Commit {
        audit: Some(event(world, action)),
        ..commit([put("key", "value", expect)])
    };
    let applied = world.store.commit(world.repository, audited(Expectation::Absent, "done")).await.unwrap();
    assert!(matches!(applied, Outcome::Applied(_)));
    let stale = world.store.commit(world.repository, audited(Expectation::Absent, "not done")).await.unwrap();
    assert!(matches!(stale, Outcome::Stale(_)));
    let found = events(world, AuditFilter::default()).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].event, AuditEvent { detail: "{}".to_owned(), ..event(world, "done") });
    assert_eq!((found[0].refused.as_deref(), found[0].times), (None, 1));
}

async fn refusals_are_counted_by_minute(world: &World) {
    let refusal = |organization, address: &str| Refusal {
        organization,
        actor: "owner@localhost".to_owned(),
        credential: "token:1".to_owned(),
        address: address.to_owned(),
        code: "unauthorized".to_owned(),
    };
    let (minute, here) = (now_ms() / 60_000 * 60_000, Some(world.organization));
    let before = world.store.statements();
    for at in [minute, minute + 59_999, minute + 60_000] {
        world.store.refused(refusal(here, "127.0.0.1"), at);
    }
    world.store.refused(refusal(None, "127.0.0.2"), minute);
    // The store may also run a statement of its own after its start.
    let ran = world.store.statements() - before;
    assert!(ran < 4, "four refusals cost {ran} statements");
    world.store.write_refusals().await.unwrap();
    world.store.refused(refusal(here, "127.0.0.1"), minute + 30_000);
    world.store.write_refusals().await.unwrap();
    let refused = AuditFilter { refused: Some(true), ..AuditFilter::default() };
    let mut found: Vec<_> =
        events(world, refused.clone()).await.into_iter().map(|row| (row.event.address, row.times)).collect();
    found.sort();
    let counted = [("127.0.0.1", 1), ("127.0.0.1", 3), ("127.0.0.2", 1)];
    assert_eq!(found, counted.map(|(address, times)| (address.to_owned(), times)));
    world.store.create_organization(organization("second"), None).await.unwrap().unwrap();
    world.store.refused(refusal(None, "127.0.0.3"), minute);
    world.store.write_refusals().await.unwrap();
    assert_eq!(
        events(world, refused).await.len(),
        3,
        "with several organizations, a refusal without one is not recorded"
    );
}

async fn a_note_survives_a_cancelled_caller(world: &World) {
    let (store, refused) = (&world.store, AuditFilter { refused: Some(true), ..AuditFilter::default() });
    let refuse = |address: &str| {
        let refusal = Refusal {
            organization: Some(world.organization),
            actor: "owner@localhost".to_owned(),
            credential: "token:1".to_owned(),
            address: address.to_owned(),
            code: "unauthorized".to_owned(),
        };
        store.refused(refusal, now_ms());
    };
    // The test must drop a call that still waits for the database. The loop repeats because the
    // database sometimes answers at the first poll.
    for attempt in 0.. {
        refuse("127.0.0.1");
        let mut given_up = Box::pin(store.write_refusals());
        if futures::poll!(&mut given_up).is_pending() {
            break;
        }
        assert!(attempt < 100, "the writer has the notes and waits for the database");
    }
    store.write_refusals().await.unwrap();
    assert_eq!(events(world, refused.clone()).await.len(), 1, "the notes of the abandoned call are lost");
    refuse("127.0.0.2");
    let second = async {
        store.write_refusals().await.unwrap();
        events(world, refused.clone()).await.len()
    };
    let (first, written) = tokio::join!(biased; store.write_refusals(), second);
    first.unwrap();
    assert_eq!(written, 2, "a writer without work does not see what another is writing");
}

async fn old_events_are_forgotten(world: &World) {
    let store = &world.store;
    for action in ["one", "two", "three"] {
        store.audit(event(world, action)).await.unwrap();
    }
    let now = now_ms();
    assert_eq!(store.forget_audit(now - 5_000, 10).await.unwrap(), 0);
    let soon = now + 5_000;
    assert_eq!(events(world, AuditFilter { since: Some(soon), ..AuditFilter::default() }).await, []);
    let until = AuditFilter { until: Some(soon), since: Some(now - 60_000), ..AuditFilter::default() };
    assert_eq!(events(world, until).await.len(), 3);
    assert_eq!(store.forget_audit(soon, 2).await.unwrap(), 2);
    assert_eq!(events(world, AuditFilter::default()).await[0].event.action, "three");
    assert_eq!(store.forget_audit(soon, 2).await.unwrap(), 1);
}

async fn formats_are_switched(world: &World) {
    let (store, here) = (&world.store, world.organization);
    let repository = store.find_repository(here, world.repository).await.unwrap().unwrap();
    let (name, format) = (repository.name, repository.format);
    let found = async || store.look_up(here, &name, None).await.unwrap().enabled;
    assert_eq!(found().await, None);
    for enabled in [false, true, false] {
        store.set_format_enabled(here, &format, enabled, Some(event(world, "switch"))).await.unwrap();
        assert_eq!(found().await, Some(enabled));
    }
    assert_eq!(store.formats_enabled(here).await.unwrap(), [(format, false)]);
    assert_eq!(events(world, AuditFilter::default()).await.len(), 3);
}

async fn token_use_is_written_later(world: &World) {
    let token = world.store.create_token(world.organization, token(world, 1, None), None).await.unwrap();
    let ran = fewest_statements(&world.store, 0, async || {
        world.store.token_used(token.id, 50);
        world.store.token_used(token.id, 40);
    });
    assert_eq!(ran.await, 0);
    world.store.write_token_use().await.unwrap();
    assert_eq!(
        world.store.find_token(world.organization, token.id).await.unwrap().unwrap().last_used_at,
        Some(50)
    );
}
