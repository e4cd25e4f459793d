//! Trials of components: one of a format, counted by several servers, ended by an activation.

use packhouse_store::{
    FormatChange, FormatPlugin, MAX_RECORDINGS, NewRecording, NewTrial, PLUGIN_SPARES, RepositoryId, Sha256,
    TrialCounts, TrialId, TrialTimes,
};

use crate::support::{World, in_both};

in_both! {
    a_format_has_one_trial, what_servers_count_is_added_up, an_activation_ends_it, recordings_are_bounded,
    what_is_tried_is_kept,
}

fn new(world: &World, digest: &str) -> NewTrial {
    NewTrial {
        format: "raw".to_owned(),
        digest: digest.to_owned(),
        mode: "canary".to_owned(),
        organization: world.organization,
        repositories: Some(vec![world.repository, RepositoryId(7)]),
        percent: 30,
        max_failures: Some(3),
        started_by: "owner@localhost".to_owned(),
    }
}

async fn begin(world: &World, digest: &str) -> TrialId {
    let seen = world.store.plugin_changes().await.unwrap();
    world.store.begin_trial(new(world, digest), seen, None, None).await.unwrap().unwrap()
}

async fn a_format_has_one_trial(world: &World) {
    let store = &world.store;
    assert_eq!(store.find_trial("raw").await.unwrap(), None);
    let first = begin(world, "sha256:aa").await;
    let seen = store.plugin_changes().await.unwrap();
    assert_eq!(
        store.begin_trial(new(world, "sha256:cc"), seen - 1, None, None).await.unwrap(),
        None,
        "another came between"
    );
    let second = begin(world, "sha256:bb").await;
    let row = store.find_trial("raw").await.unwrap().unwrap();
    assert_eq!((row.id, &row.new, row.ended_at), (second, &new(world, "sha256:bb"), None));
    let state = store.plugin_state().await.unwrap();
    assert_eq!(state.trial("raw"), Some(&row));
    assert!(!store.take_trial_back(first, None).await.unwrap(), "it is gone");
    assert!(store.take_trial_back(second, None).await.unwrap());
    assert!(!store.take_trial_back(second, None).await.unwrap(), "once is enough");
    assert!(store.find_trial("raw").await.unwrap().unwrap().ended_at.is_some(), "it is shown still");
    assert_eq!(store.plugin_state().await.unwrap().trial("raw"), None);
    assert!(store.end_trial("raw", None).await.unwrap());
    assert!(!store.end_trial("raw", None).await.unwrap());
}

async fn what_servers_count_is_added_up(world: &World) {
    let store = &world.store;
    let id = begin(world, "sha256:aa").await;
    let times = |calls, total_us, max_us| TrialTimes { calls, total_us, max_us };
    let one = TrialCounts {
        calls: 3,
        failed: 2,
        candidate: times(3, 30, 20),
        active: times(1, 5, 5),
        ..TrialCounts::default()
    };
    let other =
        TrialCounts { calls: 1, equal: 1, failed: 1, candidate: times(1, 9, 9), ..TrialCounts::default() };
    let changes = store.plugin_changes().await.unwrap();
    assert_eq!(store.add_trial_counts(id, one).await.unwrap(), Some(2));
    assert_eq!(store.add_trial_counts(id, other).await.unwrap(), Some(3));
    assert_eq!(store.plugin_changes().await.unwrap(), changes, "nobody has to follow that");
    let counts = store.find_trial("raw").await.unwrap().unwrap().counts;
    assert_eq!((counts.calls, counts.equal, counts.failed), (4, 1, 3));
    assert_eq!((counts.candidate, counts.active), (times(4, 39, 20), times(1, 5, 5)));
    store.end_trial("raw", None).await.unwrap();
    assert_eq!(store.add_trial_counts(id, one).await.unwrap(), None);
}

async fn an_activation_ends_it(world: &World) {
    let store = &world.store;
    begin(world, "sha256:aa").await;
    let seen = store.plugin_changes().await.unwrap();
    let format = |format: &str| FormatPlugin { format: format.to_owned(), ..FormatPlugin::default() };
    let change = |of: &str, seen| FormatChange { format: format(of), seen, taken_in: None };
    let number = store.change_format_plugin(change("other", seen), None).await.unwrap().unwrap();
    assert!(store.find_trial("raw").await.unwrap().is_some(), "it was of another format");
    store.change_format_plugin(change("raw", number), None).await.unwrap().unwrap();
    assert_eq!(store.find_trial("raw").await.unwrap(), None);
}

async fn recordings_are_bounded(world: &World) {
    let store = &world.store;
    let id = begin(world, "sha256:aa").await;
    let recording = || NewRecording {
        recorded_at: 1,
        function: "handle".to_owned(),
        outcome: "200".to_owned(),
        component: "sha256:00".to_owned(),
        is_cut: false,
        content: b"{}".to_vec(),
    };
    for number in 0..MAX_RECORDINGS + 3 {
        let kept = store.keep_trial_recording(id, world.repository, false, recording()).await.unwrap();
        assert_eq!(kept, number < MAX_RECORDINGS);
    }
    assert!(
        store.keep_trial_recording(id, world.repository, true, recording()).await.unwrap(),
        "of the others"
    );
    assert!(!store.keep_trial_recording(id, RepositoryId(1), true, recording()).await.unwrap());
    let different = store.trial_recordings(id, false).await.unwrap();
    assert_eq!(
        (different.len(), store.trial_recordings(id, true).await.unwrap().len()),
        (MAX_RECORDINGS as usize, 1)
    );
    let file = store.recording(world.organization, "raw", different[0]).await.unwrap();
    assert_eq!(file.as_deref(), Some(&b"{}"[..]));
    assert!(store.armed_recording_sets().await.unwrap().is_empty(), "nothing is recorded by itself");
    begin(world, "sha256:bb").await;
    assert!(store.trial_recordings(id, false).await.unwrap().is_empty(), "they go with the next trial");
    assert!(!store.keep_trial_recording(id, world.repository, false, recording()).await.unwrap());
}

async fn what_is_tried_is_kept(world: &World) {
    let store = &world.store;
    let component = |bytes: Vec<u8>| packhouse_store::NewComponent {
        digest: Sha256::of(&bytes).digest().to_string(),
        format: "raw".to_owned(),
        told: "{}".to_owned(),
        source: "upload".to_owned(),
        signed_by: None,
        bytes: bytes.into(),
    };
    let tried = component(b"tried".to_vec());
    let digest = tried.digest.clone();
    store.install_component(tried, None).await.unwrap();
    begin(world, &digest).await;
    for number in 0..PLUGIN_SPARES + 3 {
        store.install_component(component(vec![1; number + 1]), None).await.unwrap();
    }
    assert!(store.component_bytes(&digest).await.unwrap().is_some());
}
