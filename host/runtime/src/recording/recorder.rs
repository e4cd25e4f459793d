//! Which calls are recorded, and what became of them. Whoever runs plugins says of which repositories (`arm`), and takes the recordings
//! (`finished`). Where nothing is armed, a call costs one look at a flag.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use packhouse_store::RepositoryId;
use tokio::sync::{Mutex, mpsc};

use super::file::Recording;
use super::secrets::Secrets;
use crate::aside::Aside;
use crate::boxed;

/// Bytes that all calls which are being recorded, and recordings that wait to be taken, hold at most.
const MOST_AT_ONCE: usize = 64 << 20;
/// Recordings that wait to be taken.
const WAITING: usize = 64;

/// What shall be recorded of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Armed {
    /// What its recordings belong to.
    pub set: i64,
    /// Whose calls.
    pub repository: RepositoryId,
    /// So many calls at most; of failing ones, which are taken as long as it is armed, whoever keeps them keeps so many.
    pub count: u32,
    /// Only calls that fail.
    pub only_failures: bool,
}

/// See the module. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    is_armed: AtomicBool,
    sets: RwLock<Vec<Arc<Set>>>,
    /// Bytes that are held.
    held: AtomicUsize,
    /// Beginnings of words that are credentials wherever they stand.
    hidden: RwLock<Vec<String>>,
    sender: mpsc::Sender<Finished>,
    receiver: Mutex<mpsc::Receiver<Finished>>,
}

struct Set {
    armed: Armed,
    taken: AtomicU32,
}

/// Who wants a recording.
pub(crate) struct Wanted {
    recorder: Recorder,
    sets: Vec<Arc<Set>>,
    /// Who alone gets it, where it is a call aside.
    aside: Option<Arc<Aside>>,
}

/// A call that was recorded.
#[derive(Debug)]
pub struct Finished {
    /// The sets that it belongs to.
    pub sets: Vec<i64>,
    recording: Recording,
    hidden: Vec<String>,
    _reserved: Reserved,
}

/// Room for what recordings hold, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    recorder: Recorder,
    bytes: usize,
}

impl Default for Recorder {
    fn default() -> Recorder {
        let (sender, receiver) = mpsc::channel(WAITING);
        Recorder(Arc::new(Shared {
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
    /// Records these, and nothing else any more. One that was armed before goes on counting.
    pub fn arm(&self, sets: Vec<Armed>) {
        let mut armed = self.0.sets.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *armed);
        *armed = sets
            .into_iter()
            .map(|set| {
                let same = before.iter().find(|other| other.armed == set);
                same.map_or_else(|| Arc::new(Set { armed: set, taken: AtomicU32::new(0) }), Arc::clone)
            })
            .collect();
        self.0.is_armed.store(!armed.is_empty(), Ordering::Relaxed);
    }

    /// Words that begin so are never in a recording.
    pub fn hide(&self, beginnings: Vec<String>) {
        *self.0.hidden.write().unwrap_or_else(PoisonError::into_inner) = beginnings;
    }

    /// Waits for a call that was recorded. One at a time: others wait for their turn.
    #[boxed]
    pub async fn finished(&self) -> Option<Finished> {
        self.0.receiver.lock().await.recv().await
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.0.is_armed.load(Ordering::Relaxed)
    }

    /// Who wants a recording of a call about this repository; none where nobody does.
    pub(super) fn wanted(&self, repository: RepositoryId) -> Option<Wanted> {
        let all = self.0.sets.read().unwrap_or_else(PoisonError::into_inner);
        let takes = |set: &&Arc<Set>| set.armed.repository == repository && !set.is_full();
        let sets: Vec<Arc<Set>> = all.iter().filter(takes).map(Arc::clone).collect();
        (!sets.is_empty()).then(|| Wanted { recorder: self.clone(), sets, aside: None })
    }

    /// A recording of a call aside.
    pub(super) fn wanted_aside(&self, aside: &Arc<Aside>) -> Wanted {
        Wanted { recorder: self.clone(), sets: Vec::new(), aside: Some(Arc::clone(aside)) }
    }

    /// Room for so many bytes; none where there is no more.
    pub(super) fn reserve(&self, bytes: usize) -> Option<Reserved> {
        let mut reserved = Reserved { recorder: self.clone(), bytes: 0 };
        reserved.grow_to(bytes).then_some(reserved)
    }
}

impl Set {
    fn is_full(&self) -> bool {
        !self.armed.only_failures && self.taken.load(Ordering::Relaxed) >= self.armed.count
    }

    /// Whether it takes this call.
    fn takes(&self, failed: bool) -> bool {
        if self.armed.only_failures {
            return failed;
        }
        self.taken.fetch_add(1, Ordering::Relaxed) < self.armed.count
    }
}

impl Reserved {
    /// False where there is no more room.
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
    /// Hands a recording to who takes it, where a set wants it. It is dropped where too many wait.
    pub(super) fn hand_over(recording: Recording, reserved: Reserved, wanted: Wanted, failed: bool) {
        let Wanted { recorder, sets, aside } = wanted;
        let sets: Vec<i64> = sets.iter().filter(|set| set.takes(failed)).map(|set| set.armed.set).collect();
        if sets.is_empty() && aside.is_none() {
            return;
        }
        let hidden = recorder.0.hidden.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(aside) = aside {
            aside.hand_over(Finished { sets, recording, hidden, _reserved: reserved });
            return;
        }
        if recorder.0.sender.try_send(Finished { sets, recording, hidden, _reserved: reserved }).is_err() {
            tracing::warn!("a recording of a plugin's call is dropped: too many wait to be kept");
        }
    }

    /// The recording, with every credential taken out. Takes some time for a large one.
    #[must_use]
    pub fn into_recording(self) -> Recording {
        let Finished { mut recording, hidden, .. } = self;
        Secrets::of(&recording, &hidden).take_out(&mut recording);
        recording
    }
}
