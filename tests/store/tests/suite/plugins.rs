//! Components of formats. The store holds whole components only, one active component for each
//! format, and a bounded number of spare ones.

use bytes::Bytes;
use packhouse_store::{
    FormatChange, FormatPlugin, NewComponent, OrganizationId, PLUGIN_HISTORY, PLUGIN_SPARES, RepositoryId,
    Sha256, Store,
};

use crate::support::{World, in_both};

in_both! {
    a_component_is_stored_whole,
    changes_happen_one_after_the_other,
    spares_are_bounded,
    a_pin_is_of_one_repository,
}

fn component(format: &str, bytes: Vec<u8>) -> NewComponent {
    NewComponent {
        digest: Sha256::of(&bytes).digest().to_string(),
        format: format.to_owned(),
        description: "{}".to_owned(),
        source: "upload".to_owned(),
        signed_by: None,
        bytes: Bytes::from(bytes),
    }
}

async fn a_component_is_stored_whole(world: &World) {
    let store = &world.store;
    let bytes: Vec<u8> = (0..1_300_000_u32).map(|number| (number % 251) as u8).collect();
    let new = component("raw", bytes.clone());
    let digest = new.digest.clone();
    assert!(store.install_component(new.clone(), None).await.unwrap());
    let changes = store.plugin_changes().await.unwrap();
    assert!(!store.install_component(new, None).await.unwrap(), "it is there");
    assert_eq!(store.plugin_changes().await.unwrap(), changes, "nothing was changed");
    assert_eq!(store.component_bytes(&digest).await.unwrap().unwrap(), bytes);
    let row = store.find_component(&digest).await.unwrap().unwrap();
    assert_eq!((row.size, row.format.as_str()), (bytes.len() as u64, "raw"));
    assert_eq!(store.component_bytes("sha256:00").await.unwrap(), None);
}

async fn changes_happen_one_after_the_other(world: &World) {
    let (store, another) = (&world.store, Store::open(world.config.clone()).await.unwrap());
    let state = store.plugin_state().await.unwrap();
    let change = |active: &str| FormatChange {
        format: FormatPlugin {
            format: "raw".to_owned(),
            active: Some(active.to_owned()),
            history: (0..PLUGIN_HISTORY + 5).map(|number| number.to_string()).collect(),
        },
        based_on: state.number,
        taken_in: None,
    };
    let both = tokio::join!(
        store.change_format_plugin(change("one"), None),
        another.change_format_plugin(change("two"), None)
    );
    let (one, two) = (both.0.unwrap(), both.1.unwrap());
    assert!(one.is_some() != two.is_some(), "{one:?} {two:?}");
    let state = another.plugin_state().await.unwrap();
    let row = state.of("raw").unwrap();
    assert_eq!(row.active.as_deref(), Some(if one.is_some() { "one" } else { "two" }));
    assert_eq!(row.history.len(), PLUGIN_HISTORY);
    assert_eq!(row.history.last().unwrap(), &(PLUGIN_HISTORY + 4).to_string());
    another.close().await;
}

async fn spares_are_bounded(world: &World) {
    let store = &world.store;
    let installed = component("raw", b"kept".to_vec());
    let digest = installed.digest.clone();
    store.install_component(installed, None).await.unwrap();
    store.pin_repository(world.organization, world.repository, Some(&digest), None, None).await.unwrap();
    for number in 0..PLUGIN_SPARES + 3 {
        store.install_component(component("raw", vec![1; number + 1]), None).await.unwrap();
    }
    let other = component("other", b"of another format".to_vec());
    store.install_component(other, None).await.unwrap();
    let of_raw = store.components().await.unwrap().into_iter().filter(|row| row.format == "raw").count();
    assert_eq!(of_raw, PLUGIN_SPARES + 1, "the pinned component is stored in addition to the spare ones");
    assert!(store.component_bytes(&digest).await.unwrap().is_some());
}

async fn a_pin_is_of_one_repository(world: &World) {
    let store = &world.store;
    let pin = async |organization, repository, digest| {
        store.pin_repository(organization, repository, digest, None, None).await.unwrap()
    };
    assert!(pin(world.organization, world.repository, Some("sha256:aa")).await);
    assert_eq!(store.plugin_state().await.unwrap().pins, [(world.repository, "sha256:aa".to_owned())]);
    assert!(!pin(OrganizationId(world.organization.0 + 1), world.repository, None).await);
    assert!(!pin(world.organization, RepositoryId(1), None).await);
    let another = world.another("another").await;
    assert!(pin(world.organization, another, Some("sha256:bb")).await);
    assert!(pin(world.organization, world.repository, None).await);
    assert_eq!(store.plugin_state().await.unwrap().pins, [(another, "sha256:bb".to_owned())]);
}
