//! What servers share to order certificates.

use std::time::Duration;

use packhouse_store::{AcmeProof, Store};

use crate::support::{World, in_both};

in_both! { one_holder_has_the_turn, values_are_kept_and_taken_away, proofs_are_seen_by_every_server }

const LONG: Duration = Duration::from_secs(600);

async fn one_holder_has_the_turn(world: &World) {
    let (store, another) = (&world.store, Store::open(world.config.clone()).await.unwrap());
    assert!(store.take_acme_turn("a", "one", LONG).await.unwrap());
    // Who has it keeps it; another name is another turn.
    assert!(store.take_acme_turn("a", "one", LONG).await.unwrap());
    assert!(!another.take_acme_turn("a", "two", LONG).await.unwrap());
    assert!(another.take_acme_turn("b", "two", LONG).await.unwrap());
    // Only who has it gives it back, and what was forgotten ends by itself.
    another.end_acme_turn("a", "two").await.unwrap();
    assert!(!another.take_acme_turn("a", "two", LONG).await.unwrap());
    store.end_acme_turn("a", "one").await.unwrap();
    assert!(another.take_acme_turn("a", "two", Duration::ZERO).await.unwrap());
    // Each knows the database's clock to some ms.
    soon(async || store.take_acme_turn("a", "one", LONG).await.unwrap()).await;
    let parallel = (0..8).map(|number| {
        let store = store.clone();
        async move { store.take_acme_turn("c", &number.to_string(), LONG).await.unwrap() }
    });
    let taken = futures::future::join_all(parallel).await;
    assert_eq!(taken.into_iter().filter(|taken| *taken).count(), 1);
    another.close().await;
}

async fn values_are_kept_and_taken_away(world: &World) {
    let store = &world.store;
    assert_eq!(store.acme_value("x").await.unwrap(), None);
    store.set_acme_value("x", Some("one")).await.unwrap();
    store.set_acme_value("x", Some("two")).await.unwrap();
    assert_eq!(store.acme_value("x").await.unwrap().as_deref(), Some("two"));
    store.set_acme_value("x", None).await.unwrap();
    assert_eq!(store.acme_value("x").await.unwrap(), None);
}

async fn proofs_are_seen_by_every_server(world: &World) {
    let another = Store::open(world.config.clone()).await.unwrap();
    let proof = |token: &str| AcmeProof {
        token: token.to_owned(),
        domain: "a.example".to_owned(),
        key_authorization: format!("{token}.key"),
    };
    world.store.add_acme_proof(&proof("over"), Duration::ZERO).await.unwrap();
    world.store.add_acme_proof(&proof("waits"), LONG).await.unwrap();
    soon(async || another.acme_proofs().await.unwrap() == [proof("waits")]).await;
    // One of a later order stands before that of an earlier.
    world.store.add_acme_proof(&proof("later"), LONG * 2).await.unwrap();
    assert_eq!(another.acme_proofs().await.unwrap(), [proof("later"), proof("waits")]);
    another.close().await;
}

/// Waits until this is so.
async fn soon(mut so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap();
}
