//! Retention policies, their runs, and the facts by which they judge versions.

use packhouse_store::{
    AuditEvent, CatalogChange, Change, Commit, Expectation, JudgedPlace, JudgedVersion, MAX_POLICIES,
    MAX_RUNS, NewPolicy, PolicyChange, PolicyRow, Restored, Version, VersionFile,
};

use crate::support::{World, applied, in_both, put};

in_both! {
    a_policy_is_enforced_only_as_it_was_previewed, one_server_at_a_time_has_a_run,
    an_interrupted_run_continues, policies_and_runs_are_bounded,
    versions_come_package_by_package_the_latest_first, an_unlisted_version_is_restored,
}

fn event(world: &World, action: &str) -> Option<AuditEvent> {
    let organization = world.organization;
    Some(AuditEvent {
        organization,
        actor: "me".to_owned(),
        action: action.to_owned(),
        ..AuditEvent::default()
    })
}

fn new(name: &str, digest: &str) -> NewPolicy {
    NewPolicy {
        name: name.to_owned(),
        rule: format!("{{\"of\":\"{digest}\"}}"),
        digest: digest.to_owned(),
        created_by: "me".to_owned(),
    }
}

async fn made(world: &World, name: &str) -> PolicyRow {
    world
        .store
        .create_policy(world.organization, new(name, "one"), event(world, "create"))
        .await
        .unwrap()
        .unwrap()
}

async fn change(world: &World, policy: &PolicyRow, change: PolicyChange) -> Option<PolicyRow> {
    world.store.change_policy(world.organization, policy.id, change, event(world, "change")).await.unwrap()
}

fn mode(enforced: bool) -> PolicyChange {
    PolicyChange { enforced: Some(enforced), ..PolicyChange::default() }
}

async fn enforced(world: &World, name: &str) -> PolicyRow {
    let policy = made(world, name).await;
    assert!(world.store.mark_previewed(world.organization, policy.id, &policy.digest).await.unwrap());
    change(world, &policy, mode(true)).await.unwrap()
}

async fn a_policy_is_enforced_only_as_it_was_previewed(world: &World) {
    let store = &world.store;
    let policy = made(world, "old").await;
    assert!(!policy.enforced && !policy.previewed);
    assert_eq!(change(world, &policy, mode(true)).await, None);
    assert!(!store.mark_previewed(world.organization, policy.id, "another").await.unwrap());
    assert!(store.mark_previewed(world.organization, policy.id, "one").await.unwrap());
    assert!(change(world, &policy, mode(true)).await.unwrap().enforced);
    let named = PolicyChange { name: Some("older".to_owned()), ..PolicyChange::default() };
    let named = change(world, &policy, named).await.unwrap();
    assert_eq!((named.name.as_str(), named.enforced), ("older", true));
    // One change cannot set a new rule and enforce it; the store refuses it and changes nothing.
    let rule = Some(("{}".to_owned(), "two".to_owned()));
    let both = PolicyChange { rule: rule.clone(), ..mode(true) };
    assert_eq!(change(world, &policy, both).await, None);
    assert!(store.find_policy(world.organization, policy.id).await.unwrap().unwrap().enforced);
    let changed = change(world, &policy, PolicyChange { rule, ..PolicyChange::default() }).await.unwrap();
    assert_eq!((changed.enforced, changed.previewed, changed.digest.as_str()), (false, false, "two"));
    // A change that was checked against an older rule changes nothing.
    let stale = PolicyChange { read: Some("one".to_owned()), ..mode(false) };
    assert_eq!(change(world, &policy, stale).await, None);
    assert_eq!(store.list_policies(world.organization, None, 9).await.unwrap(), [changed]);
    assert!(store.delete_policy(world.organization, policy.id, None).await.unwrap());
    assert!(!store.delete_policy(world.organization, policy.id, None).await.unwrap());
}

async fn one_server_at_a_time_has_a_run(world: &World) {
    let store = &world.store;
    let policy = enforced(world, "old").await;
    // The next run is due after one hour, unless a member requests a run.
    assert_eq!(store.claim_run(None).await.unwrap(), None);
    assert!(store.request_run(world.organization, policy.id, None).await.unwrap());
    let (one, two) = tokio::join!(store.claim_run(None), store.claim_run(None));
    let mut claims: Vec<_> = [one.unwrap(), two.unwrap()].into_iter().flatten().collect();
    assert_eq!(claims.len(), 1);
    let mut claim = claims.pop().unwrap();
    assert_eq!(store.claim_run(Some(policy.id)).await.unwrap(), None);
    (claim.run.deleted, claim.run.bytes, claim.run.skipped) = (3, 30, "[1]".to_owned());
    assert!(store.continue_run(&claim).await.unwrap());
    let listed = store.list_runs(policy.id, None, 9).await.unwrap();
    assert_eq!((listed[0].deleted, listed[0].bytes, listed[0].ended_at), (3, 30, None));
    // Pausing the policy ends the run.
    change(world, &policy, mode(false)).await.unwrap();
    assert!(!store.continue_run(&claim).await.unwrap());
    store.end_run(&claim, Some("paused")).await.unwrap();
    let ended = store.list_runs(policy.id, None, 9).await.unwrap().remove(0);
    assert_eq!((ended.deleted, ended.error.as_deref(), ended.ended_at.is_some()), (3, Some("paused"), true));
    assert!(!store.request_run(world.organization, policy.id, None).await.unwrap());
    assert_eq!(store.claim_run(Some(policy.id)).await.unwrap(), None);
}

async fn an_interrupted_run_continues(world: &World) {
    let store = &world.store;
    let policy = enforced(world, "old").await;
    let mut claim = store.claim_run(Some(policy.id)).await.unwrap().unwrap();
    (claim.run.deleted, claim.run.pending) = (7, "[[1]]".to_owned());
    assert!(store.continue_run(&claim).await.unwrap());
    store.leave_run(&claim).await.unwrap();
    // Another server can claim an open run even if no run is due.
    let next = store.claim_run(None).await.unwrap().unwrap();
    assert_eq!((next.run.id, next.run.deleted, next.run.pending.as_str()), (claim.run.id, 7, "[[1]]"));
    // The former holder no longer has the run.
    assert!(!store.continue_run(&claim).await.unwrap());
    store.end_run(&claim, None).await.unwrap();
    assert_eq!(store.list_runs(policy.id, None, 9).await.unwrap()[0].ended_at, None);
    store.leave_run(&next).await.unwrap();
    // A run ends when the rule changes, and when the policy is paused.
    let rule = Some(("{}".to_owned(), "two".to_owned()));
    change(world, &policy, PolicyChange { rule, ..PolicyChange::default() }).await.unwrap();
    store.mark_previewed(world.organization, policy.id, "two").await.unwrap();
    change(world, &policy, mode(true)).await.unwrap();
    let other = store.claim_run(None).await.unwrap().unwrap();
    assert_ne!(other.run.id, claim.run.id);
    store.leave_run(&other).await.unwrap();
    change(world, &policy, mode(false)).await.unwrap();
    store.end_paused_runs().await.unwrap();
    let listed = store.list_runs(policy.id, None, 9).await.unwrap();
    assert!(
        listed.len() == 2 && listed.iter().all(|run| run.ended_at.is_some() && run.error.is_some()),
        "{listed:?}"
    );
}

async fn policies_and_runs_are_bounded(world: &World) {
    let store = &world.store;
    let policy = enforced(world, "old").await;
    for _ in 0..MAX_RUNS + 5 {
        let claim = store.claim_run(Some(policy.id)).await.unwrap().unwrap();
        store.end_run(&claim, None).await.unwrap();
    }
    assert_eq!(store.list_runs(policy.id, None, 1000).await.unwrap().len(), MAX_RUNS as usize);
    for number in 1..MAX_POLICIES {
        made(world, &number.to_string()).await;
    }
    let one_more = store.create_policy(world.organization, new("more", "one"), None).await.unwrap();
    assert_eq!(one_more, None);
    let after =
        store.list_policies(world.organization, None, 60).await.unwrap().last().map(|policy| policy.id);
    assert_eq!(store.list_policies(world.organization, after, 60).await.unwrap().len(), 40);
    assert_eq!(store.enforced_policies().await.unwrap(), [policy.id]);
}

async fn publish_version(world: &World, name: &str, version: &str, published: u64, size: u64) {
    let file = |path: String| VersionFile { path, digest: packhouse_store::Sha256([7; 32]).digest(), size };
    let version = Version {
        name: name.to_owned(),
        version: version.to_owned(),
        files: vec![file(format!("{name}/{version}")), file(format!("{name}/{version}.asc"))],
        published: Some(published),
        ..Version::default()
    };
    let commit = Commit { catalog: vec![CatalogChange::Show(version)], ..Commit::default() };
    applied(world.store.commit(world.repository, commit).await.unwrap());
}

async fn versions_come_package_by_package_the_latest_first(world: &World) {
    let store = &world.store;
    for (name, version, published) in [
        ("a", "1", 10),
        ("a", "2", 30),
        ("a", "3", 30),
        ("a", "4", 20),
        ("b", "1", 5),
        ("ab", "9", 1),
        ("c", "1", 7),
    ] {
        publish_version(world, name, version, published, 50).await;
    }
    let of = |version: &JudgedVersion| format!("{} {}", version.name, version.version);
    for limit in [1, 2, 3, 7, 100] {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = store.judged_versions(world.repository, after.as_ref(), limit).await.unwrap();
            all.extend(page.iter().map(of));
            after = page.last().map(JudgedVersion::place);
            if page.len() < limit as usize {
                break;
            }
        }
        assert_eq!(all, ["c 1", "b 1", "ab 9", "a 3", "a 2", "a 4", "a 1"], "{limit} a page");
    }
    let top = JudgedPlace::top_of("a");
    let of_a = store.judged_versions(world.repository, Some(&top), 2).await.unwrap();
    assert_eq!(of_a.iter().map(of).collect::<Vec<_>>(), ["a 3", "a 2"]);
    let one = store.judged_version(world.repository, "a", "4").await.unwrap().unwrap();
    assert_eq!((one.published_at, one.bytes, one.last_downloaded_at), (20, 100, None));
    assert_eq!(store.judged_version(world.repository, "a", "5").await.unwrap(), None);
    let since = store.versions_since(world.repository, one.updated_at, 100).await.unwrap();
    assert!(since.iter().any(|version| of(version) == "c 1"));
    assert!(store.versions_since(world.repository, i64::MAX, 100).await.unwrap().is_empty());
}

async fn an_unlisted_version_is_restored(world: &World) {
    let store = &world.store;
    let commit =
        Commit { changes: vec![put("m/lost", "manifest", Expectation::Absent)], ..Commit::default() };
    applied(store.commit(world.repository, commit).await.unwrap());
    let begin = async |version: &str| {
        let versions = [("app", version, Some(70)), ("app", "shown", None)];
        store.begin_trash_of(world.repository, &versions, "a policy", 7).await.unwrap()
    };
    let entries = begin("sha256:0").await;
    let entry = entries[0];
    // An interrupted deletion is continued.
    assert_eq!(begin("sha256:0").await, entries);
    // The store has not yet deleted anything of the version, so the trash is empty.
    assert_eq!(store.trash(world.repository, None, 9).await.unwrap(), []);
    let remove = Change::Remove { key: "m/lost".to_owned(), expect: Expectation::Present };
    let commit = Commit { changes: vec![remove], trash: Some(entry), ..Commit::default() };
    applied(store.commit(world.repository, commit).await.unwrap());
    store.end_trash_of(&entries).await.unwrap();
    assert_eq!(store.trash_entry(world.repository, entries[1]).await.unwrap(), None);
    let listed = store.trash(world.repository, None, 9).await.unwrap();
    assert_eq!(
        (listed[0].version.as_str(), listed[0].bytes, listed[0].deleted_by.as_str()),
        ("sha256:0", 70, "a policy")
    );
    assert_eq!(world.value("m/lost").await, None);
    let restored =
        store.restore_trash(world.repository, entry, &event(world, "restore").unwrap()).await.unwrap();
    assert_eq!(restored, Restored::Done);
    assert_eq!(world.value("m/lost").await.as_deref(), Some("manifest"));
    assert_eq!(store.trash(world.repository, None, 9).await.unwrap(), []);
    // A deletion without effect leaves no entry in the trash.
    let entry = begin("sha256:1").await[0];
    store.end_trash(entry).await.unwrap();
    assert_eq!(store.trash_entry(world.repository, entry).await.unwrap(), None);
}
