//! Selection of the calls to record, and their recordings. The server arms repositories (`arm`) and
//! takes the recordings (`finished`). If nothing is armed, a call costs one check of a flag.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use packhouse_store::RepositoryId;
use tokio::sync::{Mutex, mpsc};

use super::file::Recording;
use super::secrets::Secrets;
use crate::boxed;

/// Most bytes of all calls that are being recorded and of recordings that wait to be taken.
const MOST_AT_ONCE: usize = 64 << 20;
/// Most recordings that wait to be taken.
const WAITING: usize = 64;

/// Calls of a repository that are to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Armed {
    /// The set that its recordings belong to.
    pub set: i64,
    pub repository: RepositoryId,
    /// Most recorded calls. With `only_failures`, the recorder records failing calls as long as the
    /// set is armed, and the receiver keeps only this many.
    pub count: u32,
    /// True to record only calls that fail.
    pub only_failures: bool,
}

/// Recorder of plugin calls. Cheap to clone; all clones share one state.
#[derive(Clone)]
pub struct Recorder(Arc<RecorderState>);

struct RecorderState {
    is_armed: AtomicBool,
    sets: RwLock<Vec<Arc<ArmedSet>>>,
    /// Number of bytes that are reserved.
    held: AtomicUsize,
    /// Prefixes of words that are always credentials.
    hidden: RwLock<Vec<String>>,
    sender: mpsc::Sender<Finished>,
    receiver: Mutex<mpsc::Receiver<Finished>>,
}

struct ArmedSet {
    armed: Armed,
    taken: AtomicU32,
}

/// Sets that requested a recording of a call.
pub(crate) struct RequestedSets {
    recorder: Recorder,
    sets: Vec<Arc<ArmedSet>>,
}

#[derive(Debug)]
pub struct Finished {
    /// The sets that the recording belongs to.
    pub sets: Vec<i64>,
    recording: Recording,
    hidden: Vec<String>,
    _reserved: Reserved,
}

/// Reserved space for recordings, released when it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    recorder: Recorder,
    bytes: usize,
}

impl Default for Recorder {
    fn default() -> Recorder {
        let (sender, receiver) = mpsc::channel(WAITING);
        Recorder(Arc::new(RecorderState {
            is_armed: AtomicBool::new(false),
            sets: RwLock::default(),
            held: AtomicUsize::new(0),
            hidden: RwLock::default(),
            sender,
            receiver: Mutex::new(receiver),
        }))
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("is_armed", &self.is_armed()).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Arms these sets and disarms all others. A set that was armed before keeps its count of
    /// recorded calls.
    pub fn arm(&self, sets: Vec<Armed>) {
        let mut armed = self.0.sets.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *armed);
        *armed = sets
            .into_iter()
            .map(|set| {
                let same = before.iter().find(|other| other.armed == set);
                same.map_or_else(|| Arc::new(ArmedSet { armed: set, taken: AtomicU32::new(0) }), Arc::clone)
            })
            .collect();
        self.0.is_armed.store(!armed.is_empty(), Ordering::Relaxed);
    }

    /// Excludes words with these prefixes from recordings.
    pub fn hide(&self, beginnings: Vec<String>) {
        *self.0.hidden.write().unwrap_or_else(PoisonError::into_inner) = beginnings;
    }

    /// Waits for a recorded call. Concurrent callers wait for each other.
    #[boxed]
    pub async fn finished(&self) -> Option<Finished> {
        self.0.receiver.lock().await.recv().await
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.0.is_armed.load(Ordering::Relaxed)
    }

    /// Returns the sets that request a recording of a call on this repository, or none.
    pub(super) fn sets_for(&self, repository: RepositoryId) -> Option<RequestedSets> {
        let all = self.0.sets.read().unwrap_or_else(PoisonError::into_inner);
        let takes = |set: &&Arc<ArmedSet>| set.armed.repository == repository && !set.is_full();
        let sets: Vec<Arc<ArmedSet>> = all.iter().filter(takes).map(Arc::clone).collect();
        (!sets.is_empty()).then(|| RequestedSets { recorder: self.clone(), sets })
    }

    /// Reserves this many bytes, or returns none if there is no space.
    pub(super) fn reserve(&self, bytes: usize) -> Option<Reserved> {
        let mut reserved = Reserved { recorder: self.clone(), bytes: 0 };
        reserved.grow_to(bytes).then_some(reserved)
    }
}

impl ArmedSet {
    fn is_full(&self) -> bool {
        !self.armed.only_failures && self.taken.load(Ordering::Relaxed) >= self.armed.count
    }

    /// Returns true if the set takes this call. Unless the set takes only failures, also counts the
    /// call.
    fn takes(&self, failed: bool) -> bool {
        if self.armed.only_failures {
            return failed;
        }
        self.taken.fetch_add(1, Ordering::Relaxed) < self.armed.count
    }
}

impl Reserved {
    /// Returns false if there is no space.
    pub(super) fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return true;
        }
        let held = &self.recorder.0.held;
        if held.fetch_add(more, Ordering::Relaxed).saturating_add(more) > MOST_AT_ONCE {
            held.fetch_sub(more, Ordering::Relaxed);
            return false;
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.recorder.0.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Finished {
    /// Hands a recording to the receiver if a set takes it. Drops it if too many wait.
    pub(super) fn hand_over(
        recording: Recording,
        reserved: Reserved,
        requested: RequestedSets,
        failed: bool,
    ) {
        let RequestedSets { recorder, sets } = requested;
        let sets: Vec<i64> = sets.iter().filter(|set| set.takes(failed)).map(|set| set.armed.set).collect();
        if sets.is_empty() {
            return;
        }
        let hidden = recorder.0.hidden.read().unwrap_or_else(PoisonError::into_inner).clone();
        if recorder.0.sender.try_send(Finished { sets, recording, hidden, _reserved: reserved }).is_err() {
            tracing::warn!("recording of a plugin call dropped: too many wait to be stored");
        }
    }

    /// Returns the recording with all credentials removed. This takes some time for a large one.
    #[must_use]
    pub fn into_recording(self) -> Recording {
        let Finished { mut recording, hidden, .. } = self;
        Secrets::of(&recording, &hidden).take_out(&mut recording);
        recording
    }
}
