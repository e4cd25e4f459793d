//! Recorded calls: their maximum number, the order of their removal, and the organization that owns
//! them.

use packhouse_store::{
    MAX_RECORDING_SETS, MAX_RECORDINGS, NewRecording, NewRecordingSet, OrganizationId, RecordingSet,
    StoreError,
};

use crate::support::{World, in_both};

in_both! {
    a_set_holds_the_first_calls, the_last_failing_calls_stay, sets_are_bounded_and_deleted,
    recordings_are_of_an_organization, a_repositorys_recordings_are_deleted_with_it,
}

fn new(world: &World, count: u32, only_failures: bool) -> NewRecordingSet {
    NewRecordingSet {
        organization: world.organization,
        format: "shelf".to_owned(),
        repository: world.repository,
        max_recordings: count,
        only_failures,
        created_by: "owner@localhost".to_owned(),
    }
}

async fn set(world: &World, count: u32, only_failures: bool) -> RecordingSet {
    world.store.create_recording_set(new(world, count, only_failures), None).await.unwrap().unwrap()
}

fn recording(outcome: &str) -> NewRecording {
    NewRecording {
        recorded_at: 1,
        function: "handle".to_owned(),
        outcome: outcome.to_owned(),
        component: "sha256:00".to_owned(),
        is_cut: false,
        content: outcome.as_bytes().to_vec(),
    }
}

async fn outcomes(world: &World) -> Vec<String> {
    let rows = world.store.recordings(world.organization, "shelf", None, None, 100).await.unwrap();
    rows.into_iter().map(|row| row.outcome).collect()
}

async fn a_set_holds_the_first_calls(world: &World) {
    let set = set(world, 2, false).await;
    assert_eq!(world.store.armed_recording_sets().await.unwrap(), std::slice::from_ref(&set));
    for (outcome, is_stored) in [("one", true), ("two", true), ("three", false)] {
        assert_eq!(
            world.store.keep_recording(set.id, recording(outcome)).await.unwrap(),
            is_stored,
            "{outcome}"
        );
    }
    assert_eq!(outcomes(world).await, ["two", "one"]);
    assert!(world.store.armed_recording_sets().await.unwrap().is_empty(), "the set is full");
    let found = world.store.recording_set(world.organization, "shelf", set.id).await.unwrap().unwrap();
    assert_eq!(found.recorded, 2);
}

async fn the_last_failing_calls_stay(world: &World) {
    let (set, other) = (set(world, 2, true).await, set(world, 2, true).await);
    assert!(world.store.keep_recording(other.id, recording("of another")).await.unwrap());
    for outcome in ["one", "two", "three", "four"] {
        assert!(world.store.keep_recording(set.id, recording(outcome)).await.unwrap());
    }
    assert_eq!(outcomes(world).await, ["four", "three", "of another"]);
    assert_eq!(world.store.armed_recording_sets().await.unwrap().len(), 2, "both sets continue to record");
    let store = &world.store;
    let of = store.recordings(world.organization, "shelf", Some(set.id), None, 1).await.unwrap();
    assert_eq!(of[0].outcome, "four");
    let next = store.recordings(world.organization, "shelf", Some(set.id), Some(of[0].id), 9).await.unwrap();
    assert_eq!(next.len(), 1);
    let content = store.recording(world.organization, "shelf", next[0].id).await.unwrap();
    assert_eq!(content.as_deref(), Some(b"three".as_slice()));
}

async fn sets_are_bounded_and_deleted(world: &World) {
    for count in [0, MAX_RECORDINGS + 1] {
        let refused = world.store.create_recording_set(new(world, count, false), None).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))));
    }
    let first = set(world, 1, false).await;
    for _ in 1..MAX_RECORDING_SETS {
        set(world, 1, false).await;
    }
    assert_eq!(world.store.create_recording_set(new(world, 1, false), None).await.unwrap(), None);
    assert!(world.store.keep_recording(first.id, recording("one")).await.unwrap());
    assert!(world.store.delete_recordings(world.organization, "shelf", first.id.0, None).await.unwrap());
    assert!(outcomes(world).await.is_empty(), "recordings are removed with their set");
    assert!(!world.store.delete_recordings(world.organization, "shelf", first.id.0, None).await.unwrap());
    assert!(!world.store.keep_recording(first.id, recording("late")).await.unwrap());
    set(world, 1, false).await;
}

async fn recordings_are_of_an_organization(world: &World) {
    let set = set(world, 5, false).await;
    assert!(world.store.keep_recording(set.id, recording("one")).await.unwrap());
    let (store, other) = (&world.store, OrganizationId(world.organization.0 + 1));
    let id = store.recordings(world.organization, "shelf", None, None, 1).await.unwrap()[0].id;
    for (organization, format) in [(other, "shelf"), (world.organization, "other")] {
        assert!(store.recordings(organization, format, None, None, 9).await.unwrap().is_empty());
        assert_eq!(store.recording(organization, format, id).await.unwrap(), None);
        assert_eq!(store.recording_set(organization, format, set.id).await.unwrap(), None);
        assert!(!store.delete_recordings(organization, format, id.0, None).await.unwrap());
    }
    assert!(store.delete_recordings(world.organization, "shelf", id.0, None).await.unwrap());
    assert!(outcomes(world).await.is_empty());
}

async fn a_repositorys_recordings_are_deleted_with_it(world: &World) {
    let gone = NewRecordingSet { repository: packhouse_store::RepositoryId(7), ..new(world, 1, false) };
    let gone = world.store.create_recording_set(gone, None).await.unwrap().unwrap();
    let stays = set(world, 1, false).await;
    assert!(world.store.keep_recording(gone.id, recording("gone")).await.unwrap());
    assert!(world.store.keep_recording(stays.id, recording("stays")).await.unwrap());
    assert_eq!(world.store.forget_recordings().await.unwrap(), 1);
    assert_eq!(outcomes(world).await, ["stays"]);
}
