//! Rules for versions: the number in each look-up that changes with the rules, the exceptions and
//! components of rules, and the data that previews read.

use packhouse_store::{
    AuditEvent, CatalogChange, Commit, Expectation, FactsPlace, NewException, NewPolicyComponent, NewRule,
    RuleChange, RuleMode, RuleRow, RuleText, Version, VersionFactsRow, VersionFile,
};

use crate::support::{World, applied, in_both, put};

in_both! {
    a_rule_is_enforced_only_as_it_was_previewed_and_each_change_is_another_number,
    an_ended_exception_has_no_effect, the_last_recordings_of_a_rule_stay_and_are_deleted_with_it,
    a_component_is_whole_and_stays_while_a_rule_names_it, versions_come_in_pages_with_their_files,
}

fn event(world: &World, action: &str) -> Option<AuditEvent> {
    let organization = world.organization;
    Some(AuditEvent { organization, action: action.to_owned(), ..AuditEvent::default() })
}

fn text(component: &str) -> RuleText {
    RuleText {
        component: component.to_owned(),
        settings: "{}".to_owned(),
        repositories: None,
        packages: Some(vec!["a*".to_owned()]),
        digest: format!("of {component}"),
    }
}

async fn made(world: &World, component: &str) -> RuleRow {
    let new = NewRule { name: "ours".to_owned(), text: text(component), created_by: "me".to_owned() };
    world.store.create_rule(world.organization, new, event(world, "create")).await.unwrap().unwrap()
}

async fn change(world: &World, rule: &RuleRow, change: RuleChange) -> Option<RuleRow> {
    world.store.change_rule(world.organization, rule.id, change, event(world, "change")).await.unwrap()
}

fn mode(mode: RuleMode) -> RuleChange {
    RuleChange { mode: Some(mode), ..RuleChange::default() }
}

async fn number(world: &World) -> Option<i64> {
    world.store.look_up(world.organization, "nothing", None).await.unwrap().policies
}

fn exception(until: i64) -> NewException {
    NewException {
        repository: None,
        package: "a".to_owned(),
        version: "*".to_owned(),
        reason: "because".to_owned(),
        until,
        created_by: "me".to_owned(),
    }
}

async fn a_rule_is_enforced_only_as_it_was_previewed_and_each_change_is_another_number(world: &World) {
    let store = &world.store;
    let rule = made(world, "one").await;
    assert_eq!((rule.mode, rule.previewed, number(world).await), (RuleMode::Paused, false, None));
    assert_eq!(change(world, &rule, mode(RuleMode::Enforced)).await, None);
    let warns = change(world, &rule, mode(RuleMode::Warn)).await.unwrap();
    assert_eq!(warns.mode, RuleMode::Warn);
    let first = number(world).await.unwrap();
    assert!(store.mark_rule_previewed(world.organization, rule.id, "of one").await.unwrap());
    assert!(!store.mark_rule_previewed(world.organization, rule.id, "of another").await.unwrap());
    let enforced = change(world, &rule, mode(RuleMode::Enforced)).await.unwrap();
    assert!(enforced.previewed && enforced.mode == RuleMode::Enforced);
    let second = number(world).await.unwrap();
    assert_ne!(first, second);
    let (rules, exceptions) = store.rules_that_hold(world.organization).await.unwrap();
    assert_eq!((rules, exceptions.len()), (vec![enforced], 0));
    let other = RuleChange { text: Some(text("two")), ..RuleChange::default() };
    let paused = change(world, &rule, other).await.unwrap();
    assert_eq!((paused.mode, paused.previewed, number(world).await), (RuleMode::Paused, false, None));
    assert!(store.delete_rule(world.organization, rule.id, event(world, "delete")).await.unwrap());
    assert!(!store.delete_rule(world.organization, rule.id, None).await.unwrap());
}

async fn an_ended_exception_has_no_effect(world: &World) {
    let store = &world.store;
    let rule = made(world, "one").await;
    change(world, &rule, mode(RuleMode::Warn)).await.unwrap();
    let before = number(world).await;
    let now = packhouse_store::now_ms();
    let except = |until| store.create_exception(world.organization, rule.id, exception(until), None);
    let lasting = except(now + 60_000).await.unwrap().unwrap();
    except(now - 1).await.unwrap().unwrap();
    assert_ne!(number(world).await, before);
    let (_, holding) = store.rules_that_hold(world.organization).await.unwrap();
    assert_eq!(holding, std::slice::from_ref(&lasting));
    let listed = store.list_exceptions(world.organization, rule.id, None, 10).await.unwrap();
    assert_eq!((listed.len(), &listed[0]), (2, &lasting));
    let before = number(world).await;
    assert!(store.delete_exception(world.organization, rule.id, lasting.id, None).await.unwrap());
    assert!(!store.delete_exception(world.organization, rule.id, lasting.id, None).await.unwrap());
    assert_ne!(number(world).await, before);
    assert!(store.delete_rule(world.organization, rule.id, None).await.unwrap());
    assert_eq!(number(world).await, None);
}

async fn the_last_recordings_of_a_rule_stay_and_are_deleted_with_it(world: &World) {
    let (store, organization) = (&world.store, world.organization);
    let rule = made(world, "one").await;
    let record = async |id, count| store.record_rule(organization, id, count, "me".to_owned(), None).await;
    assert!(record(rule.id, 0).await.is_err() && record(rule.id, 51).await.is_err());
    assert_eq!(record(packhouse_store::RuleId(1), 1).await.unwrap(), None, "the rule does not exist");
    let before = record(rule.id, 1).await.unwrap().unwrap();
    let set = record(rule.id, 2).await.unwrap().unwrap();
    assert_eq!(store.rules_that_record(organization).await.unwrap(), *std::slice::from_ref(&set));
    assert!(store.armed_recording_sets().await.unwrap().is_empty(), "the set does not belong to a plugin");
    let new = |outcome: &str| packhouse_store::NewRecording {
        recorded_at: 1,
        function: "judge".to_owned(),
        outcome: outcome.to_owned(),
        component: "sha256:00".to_owned(),
        is_cut: false,
        content: outcome.as_bytes().to_vec(),
    };
    assert!(!store.keep_recording(before.set, new("late")).await.unwrap(), "another set has replaced it");
    for outcome in ["one", "two", "three"] {
        assert!(store.keep_recording(set.set, new(outcome)).await.unwrap());
    }
    assert_eq!(
        store.forget_recordings().await.unwrap(),
        0,
        "nothing is forgotten, because the rule of the set still exists"
    );
    let rows = store.rule_recordings(organization, rule.id, None, 10).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.outcome.as_str()).collect::<Vec<_>>(), ["three", "two"]);
    let first = rows[0].id;
    assert_eq!(store.rule_recordings(organization, rule.id, Some(first), 10).await.unwrap(), rows[1..]);
    let file = store.rule_recording(organization, rule.id, first).await.unwrap();
    assert_eq!(file.as_deref(), Some(&b"three"[..]));
    let other = packhouse_store::OrganizationId(1);
    assert_eq!(store.rule_recording(other, rule.id, first).await.unwrap(), None);
    assert!(store.stop_recording_rule(organization, rule.id, None).await.unwrap());
    assert!(!store.stop_recording_rule(organization, rule.id, None).await.unwrap());
    let set = record(rule.id, 2).await.unwrap().unwrap();
    assert!(store.delete_rule(organization, rule.id, None).await.unwrap());
    assert!(!store.keep_recording(set.set, new("four")).await.unwrap(), "the set was removed with its rule");
}

async fn a_component_is_whole_and_stays_while_a_rule_names_it(world: &World) {
    let store = &world.store;
    let bytes: Vec<u8> = (0..1_500_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    let new = NewPolicyComponent {
        digest: "sha256:one".to_owned(),
        name: "one".to_owned(),
        version: "1".to_owned(),
        description: "{}".to_owned(),
        signed_by: None,
        installed_by: "me".to_owned(),
        bytes: bytes.clone().into(),
    };
    for _ in 0..2 {
        assert!(store.keep_policy_component(new.clone(), event(world, "install")).await.unwrap());
    }
    let rows = store.policy_components().await.unwrap();
    assert_eq!((rows.len(), rows[0].size, &rows[0].signed_by), (1, 1_500_000, &None));
    let signed = NewPolicyComponent { signed_by: Some("SHA256:key".to_owned()), ..new.clone() };
    for again in [signed, new] {
        assert!(store.keep_policy_component(again, event(world, "install")).await.unwrap());
        let row = store.find_policy_component("sha256:one").await.unwrap().unwrap();
        assert_eq!(row.signed_by.as_deref(), Some("SHA256:key"), "a signature stays");
    }
    assert_eq!(store.policy_component_bytes("sha256:one").await.unwrap().unwrap(), bytes);
    assert_eq!(store.policy_component_bytes("sha256:two").await.unwrap(), None);
    let rule = made(world, "sha256:one").await;
    assert!(store.rules_components().await.unwrap().is_empty(), "it is paused");
    change(world, &rule, mode(RuleMode::Warn)).await.unwrap();
    assert_eq!(store.rules_components().await.unwrap(), ["sha256:one"]);
    assert!(!store.remove_policy_component("sha256:one", None).await.unwrap());
    assert!(store.delete_rule(world.organization, rule.id, None).await.unwrap());
    assert!(store.remove_policy_component("sha256:one", None).await.unwrap());
    assert_eq!(store.policy_component_bytes("sha256:one").await.unwrap(), None);
}

async fn versions_come_in_pages_with_their_files(world: &World) {
    let repository = world.repository;
    let mut catalog = Vec::new();
    for number in 0..25 {
        let file = |kind: &str| VersionFile {
            path: format!("p{}/{number}.{kind}", number % 3),
            digest: packhouse_store::Sha256::of(kind.as_bytes()).digest(),
            size: 1,
        };
        catalog.push(CatalogChange::Show(Version {
            name: format!("p{}", number % 3),
            version: format!("{number:02}"),
            files: vec![file("jar"), file("pom")],
            published: (number % 2 == 0).then_some(5),
            properties: vec![("license".to_owned(), "MIT".to_owned())],
            ..Version::default()
        }));
    }
    let commit = Commit { changes: vec![put("k", "v", Expectation::Anything)], catalog, ..Commit::default() };
    applied(world.store.commit(repository, commit).await.unwrap());
    let (mut all, mut after): (Vec<VersionFactsRow>, Option<FactsPlace>) = (Vec::new(), None);
    loop {
        let page = world.store.version_facts(repository, after.as_ref(), 7).await.unwrap();
        after = page.last().map(VersionFactsRow::place);
        let is_last = page.len() < 7;
        all.extend(page);
        if is_last {
            break;
        }
    }
    assert_eq!(all.len(), 25);
    let names: Vec<(&str, &str)> =
        all.iter().map(|row| (row.version.name.as_str(), row.version.version.as_str())).collect();
    assert!(names.is_sorted() && all.iter().all(|row| row.version.files.len() == 2));
    assert!(
        all.iter()
            .all(|row| row.published.is_some() == (row.version.version.parse::<u32>().unwrap() % 2 == 0))
    );
    let one = world.store.facts_of_version(repository, "p1", "01").await.unwrap().unwrap();
    assert_eq!((one.published, one.version.properties.len()), (None, 1));
    assert!(world.store.facts_of_version(repository, "p1", "02").await.unwrap().is_none());
    let names = world.store.names_in_use(world.organization, "maven", 10).await.unwrap();
    assert_eq!(names, ["p0", "p1", "p2"]);
    assert_eq!(world.store.names_in_use(world.organization, "npm", 10).await.unwrap(), [""; 0]);
}
