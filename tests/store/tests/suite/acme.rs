//! State that servers share when they order certificates by ACME.

use std::time::Duration;

use packhouse_store::{AcmeProof, Store};

use crate::support::{World, in_both};

in_both! { one_holder_has_the_turn, values_are_stored_and_removed, every_server_finds_the_proofs }

const LONG: Duration = Duration::from_secs(600);

async fn one_holder_has_the_turn(world: &World) {
    let (store, another) = (&world.store, Store::open(world.config.clone()).await.unwrap());
    assert!(store.acquire_acme_lock("a", "one", LONG).await.unwrap());
    // The holder can acquire its lock again; locks with other names are independent.
    assert!(store.acquire_acme_lock("a", "one", LONG).await.unwrap());
    assert!(!another.acquire_acme_lock("a", "two", LONG).await.unwrap());
    assert!(another.acquire_acme_lock("b", "two", LONG).await.unwrap());
    // Only the holder can release its lock; an abandoned lock expires.
    another.release_acme_lock("a", "two").await.unwrap();
    assert!(!another.acquire_acme_lock("a", "two", LONG).await.unwrap());
    store.release_acme_lock("a", "one").await.unwrap();
    assert!(another.acquire_acme_lock("a", "two", Duration::ZERO).await.unwrap());
    // Each server knows the database's clock only to a few ms, so the lock may expire slightly
    // later.
    soon(async || store.acquire_acme_lock("a", "one", LONG).await.unwrap()).await;
    let parallel = (0..8).map(|number| {
        let store = store.clone();
        async move { store.acquire_acme_lock("c", &number.to_string(), LONG).await.unwrap() }
    });
    let taken = futures::future::join_all(parallel).await;
    assert_eq!(taken.into_iter().filter(|taken| *taken).count(), 1);
    another.close().await;
}

async fn values_are_stored_and_removed(world: &World) {
    let store = &world.store;
    assert_eq!(store.acme_value("x").await.unwrap(), None);
    store.set_acme_value("x", Some("one")).await.unwrap();
    store.set_acme_value("x", Some("two")).await.unwrap();
    assert_eq!(store.acme_value("x").await.unwrap().as_deref(), Some("two"));
    store.set_acme_value("x", None).await.unwrap();
    assert_eq!(store.acme_value("x").await.unwrap(), None);
}

async fn every_server_finds_the_proofs(world: &World) {
    let another = Store::open(world.config.clone()).await.unwrap();
    let proof = |token: &str| AcmeProof {
        token: token.to_owned(),
        domain: "a.example".to_owned(),
        key_authorization: format!("{token}.key"),
    };
    world.store.add_acme_proof(&proof("over"), Duration::ZERO).await.unwrap();
    world.store.add_acme_proof(&proof("waits"), LONG).await.unwrap();
    soon(async || another.acme_proofs().await.unwrap() == [proof("waits")]).await;
    // A proof of a later order takes precedence over an earlier one.
    world.store.add_acme_proof(&proof("later"), LONG * 2).await.unwrap();
    assert_eq!(another.acme_proofs().await.unwrap(), [proof("later"), proof("waits")]);
    another.close().await;
}

/// Waits until `so` returns true.
async fn soon(mut so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap();
}
