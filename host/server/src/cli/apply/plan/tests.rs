//! Tests of plans, with states that no server had to be asked for.

use serde_json::json;

use super::*;
use crate::cli::apply::canonical::canonical;
use crate::cli::apply::documents::parse;

fn object(kind: DocumentKind, id: &str, name: &str, spec: Value) -> CurrentObject {
    CurrentObject {
        kind,
        id: id.to_owned(),
        name: name.to_owned(),
        spec: canonical(kind, spec.as_object().unwrap().clone()),
        has_content: false,
        external: BTreeSet::new(),
    }
}

fn repository(id: &str, name: &str, kind: &str, more: Value) -> CurrentObject {
    let mut spec = json!({"format": "fifth", "kind": kind, "settings": {"offline": false, "trash_days": 7}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object(DocumentKind::Repository, id, name, spec)
}

fn state(objects: Vec<CurrentObject>) -> ServerState {
    let mut state = ServerState { objects, ..ServerState::default() };
    for object in &state.objects {
        let ids = match object.kind {
            DocumentKind::Repository => &mut state.ids.repositories,
            DocumentKind::Team => &mut state.ids.teams,
            _ => &mut state.ids.members,
        };
        ids.insert(object.name.clone(), object.id.clone());
    }
    state.ids.members.insert("a@example.com".to_owned(), "90".to_owned());
    state
}

const PRUNE: PruneOptions = PruneOptions { prune: true, prune_repositories: false };

fn made(text: &str, state: &ServerState, options: PruneOptions) -> ApplyPlan {
    plan(parse("a.yaml", text).unwrap(), state, options).unwrap()
}

fn lines(text: &str, state: &ServerState, options: PruneOptions) -> Vec<String> {
    made(text, state, options).to_string().lines().map(str::to_owned).collect()
}

#[track_caller]
fn problem(text: &str, state: &ServerState, words: &str) {
    let problems = plan(parse("a.yaml", text).unwrap(), state, PruneOptions::default()).unwrap_err();
    assert!(problems.iter().any(|problem| problem.contains(words)), "{words:?}: {problems:?}");
}

const LIBS: &str =
    "kind: Repository\nname: libs\nspec: {format: fifth, kind: hosted, settings: {offline: true}}\n";
const ALL: &str = "kind: Repository\nname: all\nspec: {format: fifth, kind: group, members: [libs]}\n";

#[test]
fn groups_are_created_after_their_members_and_deleted_before_them() {
    let text = format!("{ALL}---\n{LIBS}");
    assert_eq!(lines(&text, &state(Vec::new()), PRUNE), ["create Repository libs", "create Repository all"]);
    let old = || {
        vec![
            repository("1", "one", "hosted", json!({})),
            repository("2", "two", "group", json!({"members": ["one"]})),
            repository("3", "libs", "hosted", json!({"settings": {"offline": true}})),
        ]
    };
    assert_eq!(lines(LIBS, &state(old()), PRUNE), ["delete Repository two", "delete Repository one"]);
    let mut full = old();
    full[0].has_content = true;
    let left = "left alone Repository one: it has packages; --prune-repositories deletes it with them";
    assert_eq!(lines(LIBS, &state(full.clone()), PRUNE), ["delete Repository two", left]);
    let all = PruneOptions { prune: true, prune_repositories: true };
    assert_eq!(lines(LIBS, &state(full), all).len(), 2);
}

#[test]
fn only_differing_fields_are_changed() {
    let same = repository("1", "libs", "hosted", json!({"settings": {"offline": true, "trash_days": 9}}));
    let plan = made(LIBS, &state(vec![same]), PRUNE);
    assert_eq!((plan.steps.len(), plan.unchanged), (0, 1));
    let drifted = repository("1", "libs", "hosted", json!({}));
    let expected = ["change Repository libs", "  settings.offline: false → true"];
    assert_eq!(lines(LIBS, &state(vec![drifted]), PRUNE), expected);
}

#[test]
fn objects_of_kinds_without_documents_are_not_mentioned() {
    let team = object(DocumentKind::Team, "5", "devs", json!({"members": []}));
    let other = repository("6", "other", "hosted", json!({}));
    let state = state(vec![team, other]);
    let left = "left alone Repository other: no document describes it; --prune deletes it";
    assert_eq!(lines(LIBS, &state, PruneOptions::default()), ["create Repository libs", left]);
    assert_eq!(lines(LIBS, &state, PRUNE), ["create Repository libs", "delete Repository other"]);
}

#[test]
fn repositories_that_are_still_named_stay() {
    let group = "kind: Repository\nname: all\nspec: {format: fifth, kind: group}\n";
    let objects = vec![
        repository("1", "one", "hosted", json!({})),
        repository("2", "all", "group", json!({"members": ["one"]})),
    ];
    let left = "left alone Repository one: a document or a group names it";
    assert_eq!(lines(group, &state(objects.clone()), PRUNE), [left]);
    let team = format!(
        "{LIBS}---\nkind: Team\nname: t\nspec:\n  permissions:\n    repositories:\n      - {{repository: one, actions: [read]}}\n"
    );
    assert!(lines(&team, &state(objects), PRUNE).contains(&left.to_owned()));
}

#[test]
fn the_owner_of_the_api_token_stays() {
    let accounts = ["ci", "old"].map(|name| object(DocumentKind::ServiceAccount, name, name, json!({})));
    let teams = ["own", "other"].map(|name| object(DocumentKind::Team, name, name, json!({})));
    let mut state = state(accounts.into_iter().chain(teams).collect());
    state.own_id = "ci".to_owned();
    state.own_teams.insert("own".to_owned());
    let text = "kind: Team\nname: t\nspec: {}\n---\nkind: ServiceAccount\nname: s\nspec: {}\n";
    let plan = made(text, &state, PRUNE);
    let left: Vec<&str> = plan.left_alone.iter().map(|left| left.name.as_str()).collect();
    assert_eq!((left, plan.counts()), (vec!["ci", "own"], [2, 0, 2]));
}

#[test]
fn memberships_through_external_groups_are_not_changed() {
    let mut team = object(DocumentKind::Team, "5", "t", json!({"members": []}));
    team.external.insert("a@example.com".to_owned());
    let text = |members: &str| format!("kind: Team\nname: t\nspec: {{members: [{members}]}}\n");
    for members in ["", "A@example.com"] {
        assert_eq!(made(&text(members), &state(vec![team.clone()]), PRUNE).unchanged, 1, "{members}");
    }
}

#[test]
fn a_changed_rule_without_a_mode_is_paused() {
    let spec = json!({"repositories": "*", "match": {}, "delete": {"published_before_days": 30}, "keep": {},
        "max_deletes": 10, "mode": "enforced"});
    let state = state(vec![object(DocumentKind::RetentionPolicy, "1", "old", spec)]);
    let text = "kind: RetentionPolicy\nname: old\nspec: {repositories: \"*\", delete: {published_before_days: 9}, max_deletes: 10}\n";
    let changed = lines(text, &state, PRUNE);
    assert_eq!(changed.len(), 3, "{changed:?}");
    assert_eq!(changed[2], "  mode: \"enforced\" → \"paused\"");
    let text = text.replace("max_deletes: 10}", "max_deletes: 10, mode: enforced}");
    assert_eq!(lines(&text, &state, PRUNE).len(), 2);
}

#[test]
fn an_interrupted_replacement_of_a_publisher_is_completed() {
    let publisher = |id: &str, packages: &str| {
        let spec = json!({"repository": "libs", "provider": "oidc", "issuer": "https://i.example",
            "claims": {"sub": "x"}, "packages": [packages], "scope": ["read"]});
        object(DocumentKind::TrustedPublisher, id, "libs by oidc x", spec)
    };
    let state = state(vec![
        repository("9", "libs", "hosted", json!({})),
        publisher("1", "old"),
        publisher("2", "new"),
    ]);
    let text = "kind: TrustedPublisher\nname: x\nspec: {repository: libs, provider: oidc, issuer: \"https://i.example\", claims: {sub: x}, packages: [new], scope: [read]}\n";
    let plan = made(text, &state, PruneOptions::default());
    assert_eq!((plan.counts(), plan.unchanged), ([0, 0, 1], 1));
    assert!(matches!(&plan.steps[0].action, PlanAction::Delete { id, .. } if id == "1"), "{plan}");
}

#[test]
fn credentials_are_written_again_and_count_as_unchanged() {
    let text = "kind: Repository\nname: outside\nspec:\n  format: fifth\n  kind: proxy\n  upstream:\n    url: https://a.example/\n    credentials: {username: me, password: {from_env: X}}\n";
    let proxy = repository("1", "outside", "proxy", json!({"upstream": {"url": "https://a.example/"}}));
    let plan = made(text, &state(vec![proxy]), PRUNE);
    assert_eq!((plan.counts(), plan.unchanged, plan.steps.len()), ([0, 0, 0], 1, 1));
}

#[test]
fn problems_are_found_before_anything_is_changed() {
    let state = state(vec![
        repository("1", "libs", "proxy", json!({"upstream": {"url": "https://a.example/"}})),
        object(DocumentKind::Policy, "2", "twice", json!({})),
        object(DocumentKind::Policy, "3", "twice", json!({})),
    ]);
    problem(LIBS, &state, "a.yaml:1: Repository \"libs\": `kind` is \"proxy\" on the server");
    problem(
        &format!("{LIBS}---\n{LIBS}"),
        &state,
        "a.yaml:5: Repository \"libs\" is also described in a.yaml:1",
    );
    for (text, words) in [
        (ALL.replace("libs", "absent"), "names the repository \"absent\""),
        ("kind: Team\nname: t\nspec: {members: [b@example.com]}\n".to_owned(), "names \"b@example.com\""),
        ("kind: ServiceAccount\nname: s\nspec: {teams: [t]}\n".to_owned(), "names the team \"t\""),
        ("kind: Webhook\nname: https://h.example/\nspec: {events: [], repositories: \"*\"}\n".to_owned(), "secret_file"),
        ("kind: Policy\nname: twice\nspec: {component: c, repositories: \"*\"}\n".to_owned(), "2 objects"),
        ("kind: Policy\nname: p\nspec: {component: c, repositories: libs}\n".to_owned(), "or \"*\""),
        (
            "kind: Team\nname: t\nspec: {members: []}\n---\nkind: ServiceAccount\nname: s\nspec: {teams: [t]}\n"
                .to_owned(),
            "a.yaml:5 and a.yaml:1 disagree",
        ),
        (
            "kind: Team\nname: t\nspec: {permissions: {repositories: [{actions: [read]}]}}\n".to_owned(),
            "either `repository` or `repository_name`",
        ),
    ] {
        problem(&text, &state, words);
    }
}
