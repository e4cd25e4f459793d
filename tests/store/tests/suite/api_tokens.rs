//! API tokens, and second factors.

use packhouse_store::{
    ApiTokenId, ApiTokenRotation, AuditEvent, AuditFilter, MemberChange, MemberRow, NewApiToken, now_ms,
};

use crate::support::{World, in_both, member, organization};

in_both! {
    an_api_token_is_found_by_its_secret, api_tokens_are_listed_by_owner, an_api_token_is_revoked_once,
    a_rotation_is_compare_and_set, api_tokens_end_with_their_owner, use_of_an_api_token_is_written_later,
    a_second_factor_is_confirmed_once, a_code_counts_once, a_recovery_code_counts_once,
    a_second_factor_is_removed, an_organization_demands_a_second_factor,
}

async fn person(world: &World, email: &str) -> MemberRow {
    world.store.create_member(world.organization, member(email), None).await.unwrap().unwrap()
}

fn token(owner: &MemberRow, secret: u8) -> NewApiToken {
    NewApiToken {
        owner: owner.id,
        secret_sha256: [secret; 32],
        name: "ci".to_owned(),
        scopes: vec!["read".to_owned(), "packages".to_owned()],
        sensitive: vec!["create_token".to_owned()],
        created_by: owner.email.clone(),
        expires_at: 1000,
    }
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

async fn an_api_token_is_found_by_its_secret(world: &World) {
    let (store, here, a) = (&world.store, world.organization, person(world, "a@localhost").await);
    let made = store.create_api_token(here, token(&a, 1), event(world, "create")).await.unwrap();
    let (found, owner) = store.api_token_by_secret(&[1; 32]).await.unwrap().unwrap();
    assert_eq!((&found, &owner), (&made, &a));
    assert_eq!(found.scopes, ["read", "packages"]);
    assert_eq!(found.sensitive, ["create_token"]);
    assert!(store.api_token_by_secret(&[2; 32]).await.unwrap().is_none());
    assert_eq!(store.find_api_token(here, made.id).await.unwrap(), Some(made.clone()));
    let other = store.create_organization(organization("other"), None).await.unwrap().unwrap();
    assert!(store.find_api_token(other.id, made.id).await.unwrap().is_none());
    assert_eq!(details(world, "create").await, [format!("{{\"api_token\":\"{}\"}}", made.id)]);
    // A suspended owner is found too, so that the caller can say why it refuses.
    let suspended = store.set_member_active(&a, false, |_| false, None).await.unwrap();
    assert_eq!(suspended, MemberChange::Done);
    assert!(!store.api_token_by_secret(&[1; 32]).await.unwrap().unwrap().1.active);
    assert!(!format!("{made:?}").contains("secret"));
}

async fn api_tokens_are_listed_by_owner(world: &World) {
    let (store, here) = (&world.store, world.organization);
    let (a, b) = (person(world, "a@localhost").await, person(world, "b@localhost").await);
    let mut made = Vec::new();
    for (owner, secret) in [(&a, 1), (&b, 2), (&a, 3)] {
        made.push(store.create_api_token(here, token(owner, secret), None).await.unwrap());
    }
    let list = async |owner: Option<&MemberRow>, after: Option<ApiTokenId>, limit: u32| {
        let rows = store.list_api_tokens(here, owner.map(|owner| owner.id), after, limit).await.unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(list(Some(&a), None, 10).await, [made[0].id, made[2].id]);
    assert_eq!(list(Some(&a), Some(made[0].id), 10).await, [made[2].id]);
    assert_eq!(list(None, None, 2).await, [made[0].id, made[1].id]);
    assert_eq!(list(None, Some(made[1].id), 2).await, [made[2].id]);
}

async fn an_api_token_is_revoked_once(world: &World) {
    let (store, here, a) = (&world.store, world.organization, person(world, "a@localhost").await);
    let made = store.create_api_token(here, token(&a, 1), None).await.unwrap();
    let other = store.create_organization(organization("other"), None).await.unwrap().unwrap();
    assert!(!store.revoke_api_token(other.id, made.id, 5, None).await.unwrap());
    assert!(store.revoke_api_token(here, made.id, 5, event(world, "revoke")).await.unwrap());
    assert!(!store.revoke_api_token(here, made.id, 6, event(world, "revoke")).await.unwrap());
    assert_eq!(store.find_api_token(here, made.id).await.unwrap().unwrap().revoked_at, Some(5));
    assert_eq!(details(world, "revoke").await, [format!("{{\"api_token\":\"{}\"}}", made.id)]);
}

async fn a_rotation_is_compare_and_set(world: &World) {
    let (store, here, a) = (&world.store, world.organization, person(world, "a@localhost").await);
    let old = store.create_api_token(here, token(&a, 1), None).await.unwrap();
    let tasks: Vec<_> = (0..10)
        .map(|number| {
            let (store, old, new) = (store.clone(), old.clone(), token(&a, 10 + number));
            tokio::spawn(async move { store.rotate_api_token(&old, 100, false, new, None).await.unwrap() })
        })
        .collect();
    let mut rotated = Vec::new();
    for task in tasks {
        match task.await.unwrap() {
            ApiTokenRotation::Rotated(row) => rotated.push(*row),
            other => assert_eq!(other, ApiTokenRotation::Changed),
        }
    }
    assert_eq!(rotated.len(), 1);
    let ended = store.find_api_token(here, old.id).await.unwrap().unwrap();
    assert_eq!((ended.ends_at, ended.revoked_at), (Some(100), None));
    let next = rotated.remove(0);
    store.rotate_api_token(&next, 200, true, token(&a, 30), None).await.unwrap();
    let next = store.find_api_token(here, next.id).await.unwrap().unwrap();
    assert_eq!((next.ends_at, next.revoked_at), (Some(200), Some(200)), "it has ended by every clock");
    let mut unknown = old;
    unknown.id = ApiTokenId(1);
    let gone = store.rotate_api_token(&unknown, 1, false, token(&a, 31), None).await.unwrap();
    assert_eq!(gone, ApiTokenRotation::Gone);
}

async fn api_tokens_end_with_their_owner(world: &World) {
    let (store, here) = (&world.store, world.organization);
    let bot = store.create_service_account(here, "bot", "{}", None).await.unwrap().unwrap();
    store.create_api_token(here, token(&bot, 1), None).await.unwrap();
    assert_eq!(store.api_token_by_secret(&[1; 32]).await.unwrap().unwrap().1, bot);
    assert_eq!(store.delete_member(&bot, |_| false, None).await.unwrap(), MemberChange::Done);
    assert!(store.api_token_by_secret(&[1; 32]).await.unwrap().is_none());
    assert!(store.list_api_tokens(here, None, None, 10).await.unwrap().is_empty());
}

async fn use_of_an_api_token_is_written_later(world: &World) {
    let (store, here, a) = (&world.store, world.organization, person(world, "a@localhost").await);
    let made = store.create_api_token(here, token(&a, 1), None).await.unwrap();
    store.api_token_used(made.id, 50);
    store.api_token_used(made.id, 40);
    store.write_token_use().await.unwrap();
    assert_eq!(store.find_api_token(here, made.id).await.unwrap().unwrap().last_used_at, Some(50));
}

/// A member with a confirmed second factor, whose last accepted code was of step 7.
async fn with_second_factor(world: &World, recovery: &[&str]) -> MemberRow {
    let (store, a) = (&world.store, person(world, "a@localhost").await);
    assert!(store.begin_totp(a.id, b"sealed").await.unwrap());
    let read = store.totp(a.id).await.unwrap().unwrap();
    let recovery: Vec<String> = recovery.iter().map(|code| (*code).to_owned()).collect();
    assert!(store.confirm_totp(&read, 7, &recovery, now_ms(), event(world, "confirm")).await.unwrap());
    a
}

async fn a_second_factor_is_confirmed_once(world: &World) {
    let (store, b) = (&world.store, person(world, "b@localhost").await);
    assert!(store.totp(b.id).await.unwrap().is_none());
    for secret in [b"one", b"two"] {
        assert!(store.begin_totp(b.id, secret).await.unwrap(), "an unconfirmed secret is replaced");
    }
    let read = store.totp(b.id).await.unwrap().unwrap();
    assert_eq!((read.secret.as_slice(), read.confirmed_at), (b"two".as_slice(), None));
    assert!(!store.has_totp(b.id).await.unwrap());
    assert!(!store.use_totp_step(b.id, 9).await.unwrap(), "it is not confirmed");
    let mut replaced = read.clone();
    replaced.secret = b"one".to_vec();
    assert!(!store.confirm_totp(&replaced, 7, &[], 100, None).await.unwrap());
    assert!(store.confirm_totp(&read, 7, &["c".to_owned()], 100, None).await.unwrap());
    assert!(!store.confirm_totp(&read, 8, &[], 200, None).await.unwrap());
    assert!(!store.begin_totp(b.id, b"three").await.unwrap());
    let confirmed = store.totp(b.id).await.unwrap().unwrap();
    assert_eq!((confirmed.confirmed_at, confirmed.last_step), (Some(100), 7));
    assert_eq!((confirmed.secret, confirmed.recovery), (b"two".to_vec(), vec!["c".to_owned()]));
    assert!(store.has_totp(b.id).await.unwrap());
    assert_eq!(store.members_with_totp(world.organization).await.unwrap(), [b.id]);
    assert!(!format!("{read:?}").contains("secret"));
}

async fn a_code_counts_once(world: &World) {
    let (store, a) = (&world.store, with_second_factor(world, &[]).await);
    for (step, accepted) in [(7, false), (8, true), (8, false), (6, false), (10, true), (9, false)] {
        assert_eq!(store.use_totp_step(a.id, step).await.unwrap(), accepted, "{step}");
    }
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let (store, id) = (store.clone(), a.id);
            tokio::spawn(async move { store.use_totp_step(id, 11).await.unwrap() })
        })
        .collect();
    let mut accepted = 0;
    for task in tasks {
        accepted += usize::from(task.await.unwrap());
    }
    assert_eq!(accepted, 1);
}

async fn a_recovery_code_counts_once(world: &World) {
    let (store, a) = (&world.store, with_second_factor(world, &["c1", "c2"]).await);
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let (store, id, event) = (store.clone(), a.id, event(world, "recover"));
            tokio::spawn(async move { store.use_recovery_code(id, "c1", event).await.unwrap() })
        })
        .collect();
    let mut accepted = 0;
    for task in tasks {
        accepted += usize::from(task.await.unwrap());
    }
    assert_eq!((accepted, details(world, "recover").await.len()), (1, 1));
    assert!(!store.use_recovery_code(a.id, "c3", None).await.unwrap());
    assert_eq!(store.totp(a.id).await.unwrap().unwrap().recovery, ["c2"]);
}

async fn a_second_factor_is_removed(world: &World) {
    let (store, a) = (&world.store, with_second_factor(world, &[]).await);
    let other = store.create_organization(organization("other"), None).await.unwrap().unwrap();
    assert!(!store.delete_totp(other.id, a.id, None).await.unwrap());
    assert!(store.delete_totp(world.organization, a.id, event(world, "remove")).await.unwrap());
    assert!(!store.delete_totp(world.organization, a.id, event(world, "remove")).await.unwrap());
    assert_eq!((details(world, "remove").await.len(), store.has_totp(a.id).await.unwrap()), (1, false));
    assert!(store.begin_totp(a.id, b"again").await.unwrap());
    assert_eq!(store.delete_member(&a, |_| false, None).await.unwrap(), MemberChange::Done);
    assert!(store.totp(a.id).await.unwrap().is_none());
}

async fn an_organization_demands_a_second_factor(world: &World) {
    let (store, here) = (&world.store, world.organization);
    let demanded = async || store.organizations().await.unwrap()[0].require_second_factor;
    assert!(!demanded().await);
    for require in [true, false] {
        assert!(store.set_require_second_factor(here, require, event(world, "require")).await.unwrap());
        assert_eq!(demanded().await, require);
    }
    assert!(!store.set_require_second_factor(packhouse_store::OrganizationId(1), true, None).await.unwrap());
    assert_eq!(details(world, "require").await.len(), 2);
}
