//! Subscribers, groups of subscribers, and their access keys; invitations and password resets.

use std::sync::Arc;

use packhouse_store::{
    Accepted, AccessKeyRow, InvitationRow, KeyOwnerChange, KeyOwnerKind, KeyOwnerRow, KeyRotation, LookUp,
    MemberChange, MemberRow, NewAccessKey, NewKeyOwner, NewPassword, PasswordReset, PasswordResetRow,
    RepositoryId,
};

use crate::support::{World, in_both, member};

in_both! {
    owners_of_keys, a_key_is_found_as_a_token_is, a_key_reaches_the_repositories_of_its_groups,
    keys_are_compared_and_set, a_key_is_deleted_with_its_owner, an_invitation_is_accepted_once,
    a_taken_invitation_is_used_up, an_invitation_ends_with_its_inviter, a_completed_reset_ends_other_resets,
    codes_end_with_the_rights_of_their_maker, one_owner_remains, use_of_a_key_is_written_later,
}

async fn made(world: &World, kind: KeyOwnerKind, repositories: &[RepositoryId]) -> KeyOwnerRow {
    let new = NewKeyOwner {
        kind,
        name: "ACME".to_owned(),
        email: None,
        repositories: repositories.to_vec(),
        subscribers: Vec::new(),
    };
    world.store.create_key_owner(world.organization, new, None).await.unwrap()
}

fn new_key(owner: &KeyOwnerRow, secret: u8) -> NewAccessKey {
    NewAccessKey {
        secret_sha256: [secret; 32],
        name: None,
        owner: owner.id,
        created_by: "owner@localhost".to_owned(),
        expires_at: Some(1000),
    }
}

async fn key(world: &World, owner: &KeyOwnerRow, secret: u8) -> AccessKeyRow {
    world.store.create_access_key(world.organization, new_key(owner, secret), None).await.unwrap().unwrap()
}

async fn owner(world: &World) -> MemberRow {
    world.store.members_by_email("owner@localhost").await.unwrap().remove(0)
}

async fn look_up(world: &World, repository: &str, secret: u8) -> Arc<LookUp> {
    world.store.look_up(world.organization, repository, Some(&[secret; 32])).await.unwrap()
}

async fn owners_of_keys(world: &World) {
    let (store, other) = (&world.store, world.another("other").await);
    let subscriber = made(world, KeyOwnerKind::Subscriber, &[other, world.repository, other]).await;
    assert_eq!(subscriber.repositories, [world.repository, other]);
    let change = KeyOwnerChange {
        email: Some(Some("a@x".to_owned())),
        repositories: Some(vec![other]),
        ..KeyOwnerChange::default()
    };
    let (organization, kind) = (world.organization, KeyOwnerKind::Subscriber);
    let changed =
        store.change_key_owner(organization, kind, subscriber.id, change, None).await.unwrap().unwrap();
    assert_eq!((changed.name.as_str(), changed.email.as_deref()), ("ACME", Some("a@x")));
    assert_eq!(changed.repositories, [other]);
    let change = KeyOwnerChange { email: Some(None), ..KeyOwnerChange::default() };
    let changed =
        store.change_key_owner(organization, kind, subscriber.id, change, None).await.unwrap().unwrap();
    assert_eq!(changed, KeyOwnerRow { repositories: vec![other], ..subscriber.clone() });
    let group = made(world, KeyOwnerKind::Group, &[]).await;
    assert!(store.find_key_owner(organization, kind, group.id).await.unwrap().is_none());
    let unknown = store.change_key_owner(organization, kind, group.id, KeyOwnerChange::default(), None).await;
    assert!(unknown.unwrap().is_none());
    let found = store.find_subscribers(organization, &[subscriber.id, group.id]).await.unwrap();
    assert_eq!(found, [subscriber.id]);
    let subscribers = store.list_key_owners(organization, kind, None, 10).await.unwrap();
    assert_eq!(subscribers, [changed]);
    let later = store.list_key_owners(organization, kind, Some(subscriber.id), 10).await.unwrap();
    assert_eq!(later, []);
}

async fn a_key_is_found_as_a_token_is(world: &World) {
    let subscriber = made(world, KeyOwnerKind::Subscriber, &[world.repository]).await;
    world.another("other").await;
    let key = key(world, &subscriber, 1).await;
    let before = world.store.statements();
    let found = look_up(world, "main", 1).await;
    // The first look-up runs a statement; other statements may run at the same time.
    assert!(world.store.statements() > before);
    assert_eq!(found.key.as_ref(), Some(&key));
    assert_eq!((found.key_owner.as_deref(), found.reaches), (Some("ACME"), true));
    assert!(found.token.is_none() && found.owner.is_none());
    assert!(!look_up(world, "other", 1).await.reaches);
    assert!(world.store.revoke_access_key(subscriber.id, key.id, 9, None).await.unwrap());
    assert!(!world.store.revoke_access_key(subscriber.id, key.id, 10, None).await.unwrap());
    assert_eq!(look_up(world, "main", 1).await.key.as_ref().unwrap().revoked_at, Some(9));
    assert!(look_up(world, "main", 2).await.key.is_none());
}

async fn a_key_reaches_the_repositories_of_its_groups(world: &World) {
    let other = world.another("other").await;
    let subscriber = made(world, KeyOwnerKind::Subscriber, &[world.repository]).await;
    let groups =
        [made(world, KeyOwnerKind::Group, &[other]).await, made(world, KeyOwnerKind::Group, &[other]).await];
    key(world, &subscriber, 1).await;
    key(world, &groups[0], 2).await;
    assert!(!look_up(world, "other", 1).await.reaches);
    for group in &groups {
        let change =
            KeyOwnerChange { subscribers: Some(vec![subscriber.id, subscriber.id]), ..Default::default() };
        let kind = KeyOwnerKind::Group;
        let changed = world.store.change_key_owner(world.organization, kind, group.id, change, None).await;
        assert_eq!(changed.unwrap().unwrap().subscribers, [subscriber.id]);
    }
    assert!(look_up(world, "other", 1).await.reaches && look_up(world, "main", 1).await.reaches);
    assert_eq!(world.store.key_reach(subscriber.id).await.unwrap().len(), 2);
    // A group's key does not give the access of its members.
    assert!(look_up(world, "other", 2).await.reaches && !look_up(world, "main", 2).await.reaches);
    assert_eq!(world.store.key_reach(groups[0].id).await.unwrap(), [other]);
}

async fn keys_are_compared_and_set(world: &World) {
    let store = &world.store;
    let subscriber = made(world, KeyOwnerKind::Subscriber, &[]).await;
    let old = key(world, &subscriber, 1).await;
    assert!(store.set_access_key_expiry(&old, Some(2000), None).await.unwrap());
    assert!(!store.set_access_key_expiry(&old, Some(3000), None).await.unwrap());
    let old = store.find_access_key(subscriber.id, old.id).await.unwrap().unwrap();
    assert_eq!(old.expires_at, Some(2000));
    let tasks: Vec<_> = (0..10)
        .map(|n| {
            let (store, old, successor) = (store.clone(), old.clone(), new_key(&subscriber, 10 + n));
            tokio::spawn(
                async move { store.rotate_access_key(&old, 100, false, successor, None).await.unwrap() },
            )
        })
        .collect();
    let mut rotated = 0;
    for task in tasks {
        rotated += usize::from(matches!(task.await.unwrap(), KeyRotation::Rotated(_)));
    }
    assert_eq!(rotated, 1);
    assert_eq!(store.list_access_keys(subscriber.id, None, 50).await.unwrap().len(), 2);
    assert!(!store.set_access_key_expiry(&old, None, None).await.unwrap());
    assert!(!format!("{old:?}").contains("sha256"));
}

async fn a_key_is_deleted_with_its_owner(world: &World) {
    let subscriber = made(world, KeyOwnerKind::Subscriber, &[world.repository]).await;
    key(world, &subscriber, 1).await;
    let kind = KeyOwnerKind::Subscriber;
    assert!(
        !world
            .store
            .delete_key_owner(world.organization, KeyOwnerKind::Group, subscriber.id, None)
            .await
            .unwrap()
    );
    assert!(world.store.delete_key_owner(world.organization, kind, subscriber.id, None).await.unwrap());
    assert!(look_up(world, "main", 1).await.key.is_none());
    let late = world.store.create_access_key(world.organization, new_key(&subscriber, 2), None).await;
    assert!(late.unwrap().is_none());
}

async fn invite(world: &World, secret: u8, email: &str, invited_by: &MemberRow) {
    let row = InvitationRow {
        secret_sha256: [secret; 32],
        organization: world.organization,
        email: email.to_owned(),
        permissions: "{}".to_owned(),
        invited_by: invited_by.id,
        expires_at: i64::MAX,
    };
    world.store.create_invitation(row, None).await.unwrap();
}

async fn accept(world: &World, secret: u8, now: i64) -> Accepted {
    world.store.accept_invitation(&[secret; 32], now, new_password(), |_, _| true, None).await.unwrap()
}

fn new_password() -> NewPassword {
    NewPassword { name: "New".to_owned(), password_hash: "hash".to_owned() }
}

async fn an_invitation_is_accepted_once(world: &World) {
    invite(world, 1, "new@localhost", &owner(world).await).await;
    assert!(world.store.find_invitation(&[1; 32], 0).await.unwrap().is_some());
    assert!(world.store.find_invitation(&[1; 32], i64::MAX).await.unwrap().is_none());
    assert_eq!(accept(world, 1, i64::MAX).await, Accepted::Gone);
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let store = world.store.clone();
            tokio::spawn(async move {
                store.accept_invitation(&[1; 32], 0, new_password(), |_, _| true, None).await.unwrap()
            })
        })
        .collect();
    let mut accepted = 0;
    for task in tasks {
        match task.await.unwrap() {
            Accepted::Member(member) => {
                accepted += 1;
                assert_eq!((member.email.as_str(), member.name.as_str()), ("new@localhost", "New"));
            }
            other => assert_eq!(other, Accepted::Gone),
        }
    }
    assert_eq!(accepted, 1);
}

async fn a_taken_invitation_is_used_up(world: &World) {
    invite(world, 1, "owner@localhost", &owner(world).await).await;
    assert_eq!(accept(world, 1, 0).await, Accepted::Taken);
    assert_eq!(accept(world, 1, 0).await, Accepted::Gone);
}

async fn an_invitation_ends_with_its_inviter(world: &World) {
    let store = &world.store;
    let gone = store.create_member(world.organization, member("a@localhost"), None).await.unwrap().unwrap();
    invite(world, 1, "friend@localhost", &gone).await;
    assert_eq!(store.delete_member(&gone, |_| false, None).await.unwrap(), MemberChange::Done);
    assert_eq!(accept(world, 1, 0).await, Accepted::Gone);
}

async fn codes_end_with_the_rights_of_their_maker(world: &World) {
    let (store, owner) = (&world.store, owner(world).await);
    let maker = store.create_member(world.organization, member("a@localhost"), None).await.unwrap().unwrap();
    let reset = async |secret: u8, of: &MemberRow, by: &MemberRow| {
        let row = PasswordResetRow {
            secret_sha256: [secret; 32],
            member: of.id,
            made_by: by.id,
            expires_at: i64::MAX,
        };
        store.create_password_reset(row, None).await.unwrap();
    };
    let there = async |secret: u8| store.find_password_reset(&[secret; 32], 0).await.unwrap().is_some();

    // A reset fails and ends if the member has permissions that the reset's maker may not grant.
    // The member's password stays unchanged.
    reset(1, &owner, &maker).await;
    let too_much = store.complete_password_reset(&[1; 32], 0, "new", |_| false, None).await.unwrap();
    assert!(!too_much && !there(1).await);
    invite(world, 2, "friend@localhost", &maker).await;
    let may = |_: &MemberRow, _: &InvitationRow| false;
    let answer = store.accept_invitation(&[2; 32], 0, new_password(), may, None).await.unwrap();
    assert_eq!((answer, accept(world, 2, 0).await), (Accepted::Gone, Accepted::Gone));

    // A change of the maker's permissions or of the member's own permissions ends the reset.
    for of_maker in [true, false] {
        let (read, permissions) = if of_maker { (&maker, "{\"a\":1}") } else { (&owner, "{\"b\":1}") };
        reset(3, &owner, &maker).await;
        invite(world, 4, "friend@localhost", &maker).await;
        let set = store.set_member_permissions(read, permissions, |_| false, None).await.unwrap();
        assert_eq!((set, there(3).await), (MemberChange::Done, false));
        assert_eq!(store.find_invitation(&[4; 32], 0).await.unwrap().is_none(), of_maker);
    }
    // A change of the maker's password ends the reset, and so does the maker's removal.
    let maker = store.find_member(world.organization, maker.id).await.unwrap().unwrap();
    reset(5, &owner, &maker).await;
    assert!(store.set_member_password(world.organization, maker.id, "new", None).await.unwrap());
    assert!(!there(5).await);
    reset(6, &owner, &maker).await;
    assert_eq!(store.delete_member(&maker, |_| false, None).await.unwrap(), MemberChange::Done);
    assert!(!there(6).await);
    let now = store.find_member(world.organization, owner.id).await.unwrap().unwrap();
    assert_eq!(now.password_hash, owner.password_hash);
}

async fn a_completed_reset_ends_other_resets(world: &World) {
    let (store, owner) = (&world.store, owner(world).await);
    for secret in [1, 2] {
        let (member, made_by) = (owner.id, owner.id);
        let row = PasswordResetRow { secret_sha256: [secret; 32], member, made_by, expires_at: i64::MAX };
        store.create_password_reset(row, None).await.unwrap();
    }
    let both = PasswordReset { member: owner.clone(), made_by: owner.clone() };
    assert_eq!(store.find_password_reset(&[1; 32], 0).await.unwrap(), Some(both));
    assert!(store.find_password_reset(&[1; 32], i64::MAX).await.unwrap().is_none());
    let complete = async |secret: u8, hash: &str| {
        store.complete_password_reset(&[secret; 32], 0, hash, |_| true, None).await.unwrap()
    };
    assert!(complete(1, "new").await);
    for secret in [1, 2] {
        assert!(!complete(secret, "newer").await);
    }
    let now = store.find_member(world.organization, owner.id).await.unwrap().unwrap();
    assert_eq!(now.password_hash, "new");
}

async fn one_owner_remains(world: &World) {
    let store = &world.store;
    let needed = |permissions: &str| permissions.contains("owner");
    let first = owner(world).await;
    let set = async |read: &MemberRow, permissions: &str| {
        store.set_member_permissions(read, permissions, needed, None).await.unwrap()
    };
    assert_eq!(set(&first, "[\"owner\"]").await, MemberChange::Done);
    assert_eq!(set(&first, "{}").await, MemberChange::Changed);
    let first = owner(world).await;
    assert_eq!(set(&first, "{}").await, MemberChange::LastOwner);
    assert_eq!(store.delete_member(&first, needed, None).await.unwrap(), MemberChange::LastOwner);
    let mut new = member("b@localhost");
    new.permissions = "[\"owner\"]".to_owned();
    let second = store.create_member(world.organization, new, None).await.unwrap().unwrap();
    // Two owners remove each other at the same time; one of them must remain.
    let tasks = [first, second].map(|read| {
        let store = store.clone();
        tokio::spawn(async move {
            store
                .set_member_permissions(&read, "{}", |permissions| permissions.contains("owner"), None)
                .await
                .unwrap()
        })
    });
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    assert!(
        outcomes.contains(&MemberChange::Done) && outcomes.contains(&MemberChange::LastOwner),
        "{outcomes:?}"
    );
}

async fn use_of_a_key_is_written_later(world: &World) {
    let subscriber = made(world, KeyOwnerKind::Subscriber, &[]).await;
    let key = key(world, &subscriber, 1).await;
    world.store.access_key_used(key.id, 50);
    world.store.access_key_used(key.id, 40);
    world.store.write_token_use().await.unwrap();
    let found = world.store.find_access_key(subscriber.id, key.id).await.unwrap().unwrap();
    assert_eq!(found.last_used_at, Some(50));
}
