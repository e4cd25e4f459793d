//! Changes of a person's e-mail address.

use packhouse_store::{EmailChange, MemberRow, PasswordResetRow};

use crate::support::{World, in_both, member};

in_both! { an_address_is_compared_and_set_and_stays_unique, a_new_address_revokes_password_resets }

async fn an_address_is_compared_and_set_and_stays_unique(world: &World) {
    let (store, organization) = (&world.store, world.organization);
    let made = store.create_member(organization, member("a@example.com"), None).await.unwrap().unwrap();
    store.create_member(organization, member("b@example.com"), None).await.unwrap().unwrap();
    let set = async |read: &MemberRow, email: &str| store.set_member_email(read, email, None).await.unwrap();
    assert_eq!(set(&made, "b@example.com").await, EmailChange::Taken);
    assert_eq!(set(&made, "a@example.com").await, EmailChange::Done);
    assert_eq!(set(&made, "c@example.com").await, EmailChange::Done);
    assert_eq!(set(&made, "d@example.com").await, EmailChange::Changed);
    let found = store.find_member(organization, made.id).await.unwrap().unwrap();
    assert_eq!(found, MemberRow { email: "c@example.com".to_owned(), ..made });
    assert!(store.members_by_email("a@example.com").await.unwrap().is_empty());
    let stale = MemberRow { permissions: "{\"x\":1}".to_owned(), ..found.clone() };
    assert_eq!(set(&stale, "e@example.com").await, EmailChange::Changed);
    // A service account keeps its own form of an address.
    let account = store.create_service_account(organization, "ci", "{}", None).await.unwrap().unwrap();
    assert_eq!(set(&account, "f@example.com").await, EmailChange::Changed);
}

async fn a_new_address_revokes_password_resets(world: &World) {
    let (store, organization) = (&world.store, world.organization);
    let made = store.create_member(organization, member("a@example.com"), None).await.unwrap().unwrap();
    let reset =
        PasswordResetRow { secret_sha256: [1; 32], member: made.id, made_by: made.id, expires_at: i64::MAX };
    store.create_password_reset(reset, None).await.unwrap();
    assert!(store.find_password_reset(&[1; 32], 0).await.unwrap().is_some());
    let set = store.set_member_email(&made, "b@example.com", None).await.unwrap();
    assert_eq!(set, EmailChange::Done);
    assert!(store.find_password_reset(&[1; 32], 0).await.unwrap().is_none());
}
