//! The generation, by which a server detects commits without SQL.

use packhouse_store::Store;

use crate::support::{World, in_both, works};

in_both! { the_generation_differs_after_every_commit }

async fn the_generation_differs_after_every_commit(world: &World) {
    let another = Store::open(world.config.clone()).await.unwrap();
    let Some(mut last) = world.store.generation() else {
        assert!(another.generation().is_none());
        return;
    };
    assert!(world.store.generation() == Some(last));
    // A read does not change it.
    world.value("key").await;
    works(&another).await.unwrap();
    assert!(world.store.generation() == Some(last));
    for round in 0..20 {
        let writer = if round % 2 == 0 { &world.store } else { &another };
        let event = packhouse_store::AuditEvent {
            organization: world.organization,
            ..packhouse_store::AuditEvent::default()
        };
        writer.audit(event).await.unwrap();
        let now = world.store.generation().unwrap();
        assert!(now != last, "round {round}");
        last = now;
    }
    another.close().await;
}
