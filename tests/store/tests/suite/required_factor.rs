//! Organizations that require a second factor, and members who lack it.

use packhouse_store::{NewMember, PasswordFactor};

use crate::support::{World, in_both, member};

in_both! { only_members_with_a_password_lack_a_required_second_factor }

async fn only_members_with_a_password_lack_a_required_second_factor(world: &World) {
    let (store, organization) = (&world.store, world.organization);
    let made = store.create_member(organization, member("a@example.com"), None).await.unwrap().unwrap();
    let without = NewMember { password_hash: String::new(), ..member("b@example.com") };
    let without = store.create_member(organization, without, None).await.unwrap().unwrap();
    let lacks = async |id| store.lacks_required_factor(id).await.unwrap();
    let factor = async |id| store.password_factor(id).await.unwrap();
    assert!(!lacks(made.id).await, "nothing is required");
    assert_eq!(factor(made.id).await, PasswordFactor::NotNeeded);
    assert!(store.set_require_second_factor(organization, true, None).await.unwrap());
    assert!(lacks(made.id).await);
    assert!(!lacks(without.id).await, "it signs in through a provider");
    assert!(store.begin_totp(made.id, b"sealed").await.unwrap());
    assert!(lacks(made.id).await, "an unconfirmed one does not count");
    assert_eq!(factor(made.id).await, PasswordFactor::Missing);
    let read = store.totp(made.id).await.unwrap().unwrap();
    assert!(store.confirm_totp(&read, 1, &[], 1, None).await.unwrap());
    assert!(!lacks(made.id).await);
    assert_eq!(factor(made.id).await, PasswordFactor::Confirmed);
    assert!(store.delete_totp(organization, made.id, None).await.unwrap());
    assert!(lacks(made.id).await);
    assert!(store.set_require_second_factor(organization, false, None).await.unwrap());
    assert!(!lacks(made.id).await);
}
