//! Teams, their members, service accounts and the suspension of members.

use packhouse_store::{
    Accepted, AuditEvent, AuditFilter, InvitationRow, MemberChange, MemberKind, MemberRow, MembershipSource,
    NewPassword, NewTeam, NewToken, PasswordResetRow, Scope, TeamChange, TeamRow,
};

use crate::support::{World, fewest_statements, in_both, member, organization};

in_both! {
    a_team_has_a_name_of_its_own, a_team_is_changed_as_it_was_read,
    permissions_of_teams_come_with_the_member, memberships_are_manual_or_external,
    a_grant_needs_the_team_as_it_was_read, memberships_end_with_the_team_and_with_the_member,
    members_follow_their_groups, members_leave_a_team_that_has_no_groups_any_more,
    teams_of_a_service_account_are_set, service_accounts_are_not_persons,
    an_active_owner_remains, invitations_and_resets_rest_during_a_suspension,
    external_identifiers_are_found,
}

fn new_team(name: &str) -> NewTeam {
    NewTeam {
        name: name.to_owned(),
        description: String::new(),
        permissions: format!("{{\"{name}\":1}}"),
        external_groups: Vec::new(),
        external_id: None,
    }
}

fn with_groups(name: &str, groups: &[&str]) -> NewTeam {
    NewTeam { external_groups: texts(groups), ..new_team(name) }
}

fn texts(of: &[&str]) -> Vec<String> {
    of.iter().map(|text| (*text).to_owned()).collect()
}

async fn made(world: &World, new: NewTeam) -> TeamRow {
    world.store.create_team(world.organization, new, None).await.unwrap().unwrap()
}

async fn person(world: &World, email: &str) -> MemberRow {
    world.store.create_member(world.organization, member(email), None).await.unwrap().unwrap()
}

async fn service(world: &World, name: &str) -> MemberRow {
    let made = world.store.create_service_account(world.organization, name, "{}", None).await.unwrap();
    made.unwrap()
}

/// The member as it is in the database.
async fn present(world: &World, of: &MemberRow) -> MemberRow {
    world.store.find_member(world.organization, of.id).await.unwrap().unwrap()
}

async fn add(world: &World, team: &TeamRow, of: &MemberRow, source: MembershipSource) {
    let added = world.store.add_team_member(team, of.id, source, None).await.unwrap();
    assert_eq!(added, MemberChange::Done);
}

/// Names of the member's teams, each with the source of the membership.
async fn teams(world: &World, of: &MemberRow) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    for team in world.store.teams_of_member(of.id).await.unwrap() {
        let members = world.store.team_members(team.id, None, 100).await.unwrap();
        assert_eq!(team.members, members.len() as u64);
        let own = members.iter().find(|one| one.member.id == of.id).unwrap();
        found.push((team.name, own.source.name()));
    }
    found.sort();
    found
}

fn named(teams: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    teams.iter().map(|(name, source)| ((*name).to_owned(), *source)).collect()
}

fn event(world: &World, action: &str) -> Option<AuditEvent> {
    let (organization, action) = (world.organization, action.to_owned());
    Some(AuditEvent { organization, action, ..AuditEvent::default() })
}

/// Details of the audit events with this action, the newest first.
async fn details(world: &World, action: &str) -> Vec<String> {
    let filter = AuditFilter { action: Some(action.to_owned()), ..AuditFilter::default() };
    let events = world.store.audit_events(world.organization, &filter, None, 100).await.unwrap();
    events.into_iter().map(|row| row.event.detail).collect()
}

async fn a_team_has_a_name_of_its_own(world: &World) {
    let (store, here) = (&world.store, world.organization);
    let one = made(world, with_groups("one", &["g"])).await;
    assert!(store.create_team(here, new_team("one"), event(world, "create")).await.unwrap().is_none());
    assert!(details(world, "create").await.is_empty());
    let other = store.create_organization(organization("other"), None).await.unwrap().unwrap();
    assert!(store.create_team(other.id, new_team("one"), None).await.unwrap().is_some());
    let two = made(world, new_team("two")).await;
    assert_eq!(store.find_team(here, one.id).await.unwrap().as_ref(), Some(&one));
    assert_eq!(store.find_team_by_name(here, "two").await.unwrap().as_ref(), Some(&two));
    assert!(store.find_team(other.id, one.id).await.unwrap().is_none());
    assert_eq!(store.list_teams(here, None, 1).await.unwrap(), std::slice::from_ref(&one));
    assert_eq!(store.list_teams(here, Some(one.id), 10).await.unwrap(), [two]);
    assert_eq!(store.count_teams(here).await.unwrap(), 2);
}

async fn a_team_is_changed_as_it_was_read(world: &World) {
    let (store, one) = (&world.store, made(world, new_team("one")).await);
    made(world, new_team("two")).await;
    let set =
        async |read: &TeamRow, new: NewTeam| store.set_team(read, new, event(world, "set")).await.unwrap();
    assert_eq!(set(&one, new_team("two")).await, TeamChange::NameTaken);
    let new = NewTeam { external_id: Some("x".to_owned()), ..with_groups("three", &["a", "b"]) };
    let TeamChange::Done(three) = set(&one, new.clone()).await else { panic!("the team was not changed") };
    assert_eq!(three.name, "three");
    assert_eq!(store.find_team(world.organization, one.id).await.unwrap(), Some(*three.clone()));
    assert_eq!(set(&one, new_team("four")).await, TeamChange::Changed);
    let TeamChange::Done(same) = set(&three, new).await else { panic!("the team was not as read") };
    assert_eq!(same, three);
    assert_eq!(details(world, "set").await.len(), 2);
    assert!(store.delete_team(world.organization, one.id, None).await.unwrap());
    assert!(!store.delete_team(world.organization, one.id, None).await.unwrap());
    assert_eq!(set(&three, new_team("five")).await, TeamChange::Changed);
}

async fn permissions_of_teams_come_with_the_member(world: &World) {
    let (store, here) = (&world.store, world.organization);
    let (a, other) = (person(world, "a@localhost").await, person(world, "b@localhost").await);
    let token = NewToken {
        secret_sha256: [1; 32],
        name: "ci".to_owned(),
        scope: Scope { read: true, write: true },
        format: "generic".to_owned(),
        owner: Some(a.id),
        created_by: a.email.clone(),
        backing: None,
        backing_repository: None,
        repositories: vec![world.repository],
        expires_at: None,
        packages: Some(vec!["@acme/*".to_owned()]),
    };
    store.create_token(here, token, None).await.unwrap();
    let look_up = async || store.look_up(here, "main", Some(&[1; 32])).await.unwrap();
    assert_eq!(look_up().await.token.as_ref().unwrap().packages, Some(vec!["@acme/*".to_owned()]));
    assert_eq!(look_up().await.owner.as_ref().unwrap().team_permissions, "");

    let (one, two) = (made(world, new_team("one")).await, made(world, new_team("two")).await);
    add(world, &one, &a, MembershipSource::Manual).await;
    assert_eq!(look_up().await.owner.as_ref().unwrap().team_permissions, "[{\"one\":1}]");
    add(world, &two, &a, MembershipSource::External).await;
    let both = ["[{\"one\":1},{\"two\":1}]", "[{\"two\":1},{\"one\":1}]"];
    for found in [
        look_up().await.owner.as_deref().unwrap().clone(),
        present(world, &a).await,
        store.members_by_email("a@localhost").await.unwrap().remove(0),
        store.members_signing_in("a@localhost").await.unwrap().remove(0).0,
    ] {
        assert!(both.contains(&found.team_permissions.as_str()), "{}", found.team_permissions);
        assert_eq!(MemberRow { team_permissions: String::new(), ..found }, a);
    }
    assert_eq!(present(world, &other).await, other);
    let ran = fewest_statements(store, 1, async || {
        store.look_up(here, "absent", Some(&[1; 32])).await.unwrap();
    });
    assert!(ran.await <= 1, "a look-up is one statement");
}

async fn memberships_are_manual_or_external(world: &World) {
    let (a, one) = (person(world, "a@localhost").await, made(world, new_team("one")).await);
    for (source, then) in [
        (MembershipSource::External, "external"),
        (MembershipSource::External, "external"),
        (MembershipSource::Manual, "manual"),
        (MembershipSource::External, "manual"),
    ] {
        let added = world.store.add_team_member(&one, a.id, source, event(world, "add")).await.unwrap();
        assert_eq!(added, MemberChange::Done);
        assert_eq!(teams(world, &a).await, named(&[("one", then)]));
    }
    assert_eq!(details(world, "add").await.len(), 2, "a call that changes nothing writes no event");
    let b = person(world, "b@localhost").await;
    add(world, &one, &b, MembershipSource::Manual).await;
    let page = world.store.team_members(one.id, None, 1).await.unwrap();
    let rest = world.store.team_members(one.id, Some(page[0].member.id), 10).await.unwrap();
    assert_eq!((page[0].member.id, rest[0].member.id, rest.len()), (a.id, b.id, 1));
    assert!(world.store.remove_team_member(&one, a.id, event(world, "remove")).await.unwrap());
    assert!(!world.store.remove_team_member(&one, a.id, event(world, "remove")).await.unwrap());
    assert_eq!(details(world, "remove").await.len(), 1);
    assert_eq!(present(world, &a).await.team_permissions, "");
}

/// The granter's rights were compared with the permissions that were read.
async fn a_grant_needs_the_team_as_it_was_read(world: &World) {
    let (store, a) = (&world.store, person(world, "a@localhost").await);
    let read = made(world, new_team("one")).await;
    let more = NewTeam { permissions: "{\"more\":1}".to_owned(), ..new_team("one") };
    let TeamChange::Done(changed) = store.set_team(&read, more, None).await.unwrap() else { panic!() };
    let added = store.add_team_member(&read, a.id, MembershipSource::Manual, None).await.unwrap();
    assert_eq!(added, MemberChange::Changed);
    let set = store.set_teams_of_member(&a, std::slice::from_ref(&read), None).await.unwrap();
    assert_eq!(set, MemberChange::Changed);
    assert!(teams(world, &a).await.is_empty());
    add(world, &changed, &a, MembershipSource::Manual).await;

    let gone = person(world, "b@localhost").await;
    assert_eq!(store.delete_member(&gone, |_| false, None).await.unwrap(), MemberChange::Done);
    let other = store.create_organization(organization("other"), None).await.unwrap().unwrap();
    let foreign = store.create_member(other.id, member("c@localhost"), None).await.unwrap().unwrap();
    for of in [&gone, &foreign] {
        let added = store.add_team_member(&changed, of.id, MembershipSource::Manual, None).await.unwrap();
        assert_eq!(added, MemberChange::Changed);
        let set = store.set_teams_of_member(of, &[*changed.clone()], None).await.unwrap();
        assert_eq!(set, MemberChange::Changed);
    }
}

async fn memberships_end_with_the_team_and_with_the_member(world: &World) {
    let (a, b) = (person(world, "a@localhost").await, person(world, "b@localhost").await);
    let (one, two) = (made(world, new_team("one")).await, made(world, new_team("two")).await);
    for team in [&one, &two] {
        for of in [&a, &b] {
            add(world, team, of, MembershipSource::Manual).await;
        }
    }
    assert!(world.store.delete_team(world.organization, one.id, None).await.unwrap());
    assert_eq!(teams(world, &a).await, named(&[("two", "manual")]));
    assert_eq!(present(world, &b).await.team_permissions, "[{\"two\":1}]");
    assert_eq!(world.store.delete_member(&a, |_| false, None).await.unwrap(), MemberChange::Done);
    assert_eq!(teams(world, &b).await, named(&[("two", "manual")]));
}

async fn members_follow_their_groups(world: &World) {
    let (store, a) = (&world.store, person(world, "a@localhost").await);
    made(world, with_groups("one", &["developers", "all"])).await;
    let two = made(world, with_groups("two", &["admins"])).await;
    let three = made(world, new_team("three")).await;
    let four = made(world, with_groups("four", &["admins"])).await;
    add(world, &two, &a, MembershipSource::Manual).await;
    add(world, &three, &a, MembershipSource::External).await;
    let stay = [("three", "external"), ("two", "manual")];
    let follow = async |groups: &[&str]| {
        store.follow_external_groups(&a, &texts(groups), event(world, "follow")).await.unwrap()
    };
    assert!(!follow(&[]).await, "a manual membership and a team without groups stay");
    assert!(!follow(&["unknown", "Developers"]).await, "groups are compared exactly");
    assert_eq!(teams(world, &a).await, named(&stay));
    assert!(follow(&["all", "developers"]).await);
    assert!(!follow(&["developers"]).await);
    assert_eq!(teams(world, &a).await, named(&[("one", "external"), stay[0], stay[1]]));
    assert!(follow(&["admins"]).await);
    assert_eq!(teams(world, &a).await, named(&[("four", "external"), stay[0], stay[1]]));
    assert!(follow(&[]).await);
    assert_eq!(teams(world, &a).await, named(&stay));
    let details = details(world, "follow").await;
    assert_eq!(details.len(), 3);
    assert_eq!(details[0], format!("{{\"joined\":[],\"left\":[\"{}\"]}}", four.id));
}

async fn members_leave_a_team_that_has_no_groups_any_more(world: &World) {
    let (store, a) = (&world.store, person(world, "a@localhost").await);
    let b = person(world, "b@localhost").await;
    let one = made(world, with_groups("one", &["g"])).await;
    let managed = NewTeam { external_id: Some("x".to_owned()), ..with_groups("two", &["g"]) };
    let two = made(world, managed).await;
    assert!(store.follow_external_groups(&a, &texts(&["g"]), None).await.unwrap());
    add(world, &one, &b, MembershipSource::Manual).await;
    for (team, external_id) in [(&one, None), (&two, Some("x".to_owned()))] {
        let new = NewTeam { external_id, ..new_team(&team.name) };
        let changed = store.set_team(team, new, None).await.unwrap();
        assert!(matches!(changed, TeamChange::Done(_)));
    }
    assert_eq!(teams(world, &a).await, named(&[("two", "external")]), "a SCIM client manages the other team");
    assert_eq!(teams(world, &b).await, named(&[("one", "manual")]));
}

async fn teams_of_a_service_account_are_set(world: &World) {
    let (store, bot) = (&world.store, service(world, "bot").await);
    let mut made_teams = Vec::new();
    for name in ["one", "two", "three", "four"] {
        made_teams.push(made(world, new_team(name)).await);
    }
    let [one, two, three, four] = <[TeamRow; 4]>::try_from(made_teams).unwrap();
    for team in [&three, &four] {
        add(world, team, &bot, MembershipSource::External).await;
    }
    let set = async |teams: &[TeamRow]| store.set_teams_of_member(&bot, teams, None).await.unwrap();
    assert_eq!(set(&[two.clone(), one.clone(), two.clone()]).await, MemberChange::Done);
    let expected = [("four", "external"), ("one", "manual"), ("three", "external"), ("two", "manual")];
    assert_eq!(teams(world, &bot).await, named(&expected));
    assert_eq!(set(&[two, three]).await, MemberChange::Done);
    let expected = [("four", "external"), ("three", "manual"), ("two", "manual")];
    assert_eq!(teams(world, &bot).await, named(&expected));
    assert_eq!(set(&[]).await, MemberChange::Done);
    assert_eq!(teams(world, &bot).await, named(&[("four", "external")]));
}

async fn service_accounts_are_not_persons(world: &World) {
    let (store, here) = (&world.store, world.organization);
    let (bot, a) = (service(world, "bot").await, person(world, "a@localhost").await);
    assert_eq!((bot.kind, a.kind, bot.active), (MemberKind::Service, MemberKind::Person, true));
    assert!(bot.password_hash.is_empty() && !bot.email.contains('@'));
    assert_eq!(present(world, &bot).await, bot);
    assert!(store.members_by_email(&bot.email).await.unwrap().is_empty());
    assert!(store.members_signing_in(&bot.email).await.unwrap().is_empty());
    let persons = store.list_members(here, None, 100).await.unwrap();
    assert!(persons.len() == 2 && !persons.contains(&bot));
    assert!(store.create_service_account(here, "bot", "{}", None).await.unwrap().is_none());
    let other = service(world, "Somebody").await;
    assert_eq!(other.name, a.name, "a person may have the name of a service account");
    assert_eq!(store.list_service_accounts(here, None, 1).await.unwrap(), std::slice::from_ref(&bot));
    let rest = store.list_service_accounts(here, Some(bot.id), 9).await.unwrap();
    assert_eq!(rest, std::slice::from_ref(&other));

    let set = async |read: &MemberRow, name: &str| {
        store.set_service_account(read, name, "{\"a\":1}", None).await.unwrap()
    };
    assert_eq!(set(&bot, "Somebody").await, None);
    assert_eq!(set(&a, "new").await, Some(MemberChange::Changed), "a person is not a service account");
    assert_eq!(set(&bot, "new").await, Some(MemberChange::Done));
    assert_eq!(set(&bot, "newer").await, Some(MemberChange::Changed));
    let bot = present(world, &bot).await;
    assert_eq!((bot.name.as_str(), bot.permissions.as_str()), ("new", "{\"a\":1}"));
    // A service account is never the last owner, because nobody signs in with it.
    assert_eq!(store.delete_member(&bot, |_| true, None).await.unwrap(), MemberChange::Done);
}

async fn an_active_owner_remains(world: &World) {
    let store = &world.store;
    let is_owner = |permissions: &str| permissions.contains("owner");
    let owner =
        |email: &str| packhouse_store::NewMember { permissions: "[\"owner\"]".to_owned(), ..member(email) };
    let first = store.members_by_email("owner@localhost").await.unwrap().remove(0);
    let set = store.set_member_permissions(&first, "[\"owner\"]", is_owner, None).await.unwrap();
    assert_eq!(set, MemberChange::Done);
    let first = present(world, &first).await;
    let active = async |read: &MemberRow, active: bool| {
        store.set_member_active(read, active, is_owner, event(world, "suspend")).await.unwrap()
    };
    assert_eq!(active(&first, false).await, MemberChange::LastOwner);
    let bot = store.create_service_account(world.organization, "bot", "[\"owner\"]", None).await.unwrap();
    assert_eq!(active(&first, false).await, MemberChange::LastOwner, "{bot:?}");

    let second = store.create_member(world.organization, owner("b@localhost"), None).await.unwrap().unwrap();
    assert_eq!(active(&second, false).await, MemberChange::Done);
    assert!(!present(world, &second).await.active);
    assert_eq!(active(&second, false).await, MemberChange::Done, "a repetition waits for every server");
    assert_eq!(active(&first, false).await, MemberChange::LastOwner, "the other owner is suspended");
    assert_eq!(store.delete_member(&first, is_owner, None).await.unwrap(), MemberChange::LastOwner);
    assert_eq!(active(&second, true).await, MemberChange::Done);
    assert_eq!(active(&first, false).await, MemberChange::Done);
    let stale = MemberRow { permissions: "{}".to_owned(), ..second };
    assert_eq!(active(&stale, false).await, MemberChange::Changed);
    assert_eq!(details(world, "suspend").await.len(), 4);
}

async fn invitations_and_resets_rest_during_a_suspension(world: &World) {
    let (store, maker) = (&world.store, person(world, "a@localhost").await);
    let of = person(world, "b@localhost").await;
    let invitation = InvitationRow {
        secret_sha256: [1; 32],
        organization: world.organization,
        email: "c@localhost".to_owned(),
        permissions: "{}".to_owned(),
        invited_by: maker.id,
        expires_at: i64::MAX,
    };
    store.create_invitation(invitation, None).await.unwrap();
    let reset =
        PasswordResetRow { secret_sha256: [2; 32], member: of.id, made_by: maker.id, expires_at: i64::MAX };
    store.create_password_reset(reset, None).await.unwrap();
    for active in [false, true] {
        let changed = store.set_member_active(&maker, active, |_| false, None).await.unwrap();
        assert_eq!(changed, MemberChange::Done);
        let new = NewPassword { name: "New".to_owned(), password_hash: "hash".to_owned() };
        let accepted = store.accept_invitation(&[1; 32], 0, new, |_, _| true, None).await.unwrap();
        assert_eq!(matches!(accepted, Accepted::Member(_)), active, "{accepted:?}");
        let done = store.complete_password_reset(&[2; 32], 0, "new", |_| true, None).await.unwrap();
        assert_eq!(done, active);
    }
    let reset =
        PasswordResetRow { secret_sha256: [3; 32], member: of.id, made_by: maker.id, expires_at: i64::MAX };
    store.create_password_reset(reset, None).await.unwrap();
    for active in [false, true] {
        let changed = store.set_member_active(&of, active, |_| false, None).await.unwrap();
        assert_eq!(changed, MemberChange::Done);
        let done = store.complete_password_reset(&[3; 32], 0, "newer", |_| true, None).await.unwrap();
        assert_eq!(done, active, "the member of the code is suspended");
    }
}

async fn external_identifiers_are_found(world: &World) {
    let (store, here) = (&world.store, world.organization);
    let (a, b) = (person(world, "a@localhost").await, person(world, "b@localhost").await);
    for of in [&a, &b] {
        assert!(store.set_member_external_id(here, of.id, Some("x"), None).await.unwrap());
    }
    let found = store.find_member_by_external_id(here, "x").await.unwrap().unwrap();
    assert_eq!((found.id, found.external_id.as_deref()), (a.id, Some("x")));
    assert!(store.set_member_external_id(here, a.id, None, None).await.unwrap());
    assert_eq!(store.find_member_by_external_id(here, "x").await.unwrap().unwrap().id, b.id);
    let other = store.create_organization(organization("other"), None).await.unwrap().unwrap();
    assert!(!store.set_member_external_id(other.id, b.id, None, None).await.unwrap());
    assert!(store.find_member_by_external_id(other.id, "x").await.unwrap().is_none());
    let one = made(world, NewTeam { external_id: Some("y".to_owned()), ..new_team("one") }).await;
    assert_eq!(store.find_team_by_external_id(here, "y").await.unwrap(), Some(one));
    assert!(store.find_team_by_external_id(here, "z").await.unwrap().is_none());
}
