//! One call's dealings with upstreams: what it used of them, whether they failed it, and its room among the calls that wait.
//!
//! A call that waits for an upstream holds an instance of its plugin. So half of a plugin's calls at most may do that, and a
//! quarter for one upstream: what needs no upstream always finds an instance. A call for which there is no room ends, waits
//! outside, where it holds none, and is begun again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use packhouse_store::RepositoryId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::candidate::Candidate;
use super::lock;
use super::negative::Key;
use super::site::Site;
use super::trouble::Trouble;

/// How a call ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// With an answer, or with a refusal that is the caller's.
    Well,
    /// With a failure that what it read of an upstream may have led to.
    Badly,
    /// With one that says nothing of upstreams.
    Otherwise,
}

/// See the module.
pub struct Errand {
    /// For all calls of its plugin that wait.
    room: Arc<Semaphore>,
    /// Calls of its plugin at one time.
    calls: usize,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    used: Vec<Used>,
    /// What is not asked again, since what came was thrown away.
    thrown_away: HashSet<Key>,
    /// Whether an upstream gave no answer.
    failed: bool,
    crowded: Option<Crowded>,
    entered: Vec<(RepositoryId, Room)>,
}

/// What there was no room for.
pub(crate) type Crowded = (RepositoryId, Arc<Site>);

/// What there is to say of an errand at its end.
pub struct Ended {
    pub used: Vec<Used>,
    /// Whether an upstream gave no answer.
    pub failed: bool,
    pub crowded: Option<Crowded>,
}

/// Room for those calls of a plugin that wait, of as many as it can have at one time.
pub(crate) fn room(calls: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new((calls / 2).max(1)))
}

/// Room for a call that waits.
pub struct Room {
    _of_all: Option<OwnedSemaphorePermit>,
    _of_site: OwnedSemaphorePermit,
}

/// An answer on trial that a call used.
#[derive(Clone)]
pub struct Used {
    pub key: Key,
    pub candidate: Arc<Candidate>,
    /// Whether there is an older one that can serve in its place.
    pub older: bool,
    /// For how long (ms) metadata of its repository are fresh.
    pub ttl: i64,
}

impl Errand {
    /// One that begins, with the room of its plugin's calls and how many calls that has at one time.
    pub fn new(room: Arc<Semaphore>, calls: usize) -> Arc<Errand> {
        Arc::new(Errand { room, calls, seen: Mutex::default() })
    }

    /// How many calls may wait for one upstream.
    pub fn most_for_one(&self) -> usize {
        (self.calls / 4).max(1)
    }

    /// The same once more, after its end.
    pub fn again(&self, thrown_away: HashSet<Key>, room: Option<(RepositoryId, Room)>) -> Arc<Errand> {
        let seen = Seen { thrown_away, entered: room.into_iter().collect(), ..Seen::default() };
        Arc::new(Errand { room: Arc::clone(&self.room), calls: self.calls, seen: Mutex::new(seen) })
    }

    /// From now on until its end the call may wait for this upstream. `Crowded` when too many do.
    pub fn enter(&self, repository: RepositoryId, site: &Arc<Site>) -> Result<(), Trouble> {
        let mut seen = lock(&self.seen);
        if seen.entered.iter().any(|(entered, _)| *entered == repository) {
            return Ok(());
        }
        let of_all = match seen.entered.is_empty() {
            true => Arc::clone(&self.room).try_acquire_owned().map(Some),
            false => Ok(None),
        };
        match (of_all, Arc::clone(&site.room).try_acquire_owned()) {
            (Ok(_of_all), Ok(_of_site)) => seen.entered.push((repository, Room { _of_all, _of_site })),
            _ => {
                seen.crowded = Some((repository, Arc::clone(site)));
                return Err(Trouble::Crowded);
            }
        }
        Ok(())
    }

    /// Waits for room, as a call that holds nothing. None when there is none in time.
    pub async fn queue(&self, site: &Site) -> Option<Room> {
        let both = async {
            let of_site = Arc::clone(&site.room).acquire_owned().await.ok()?;
            let of_all = Arc::clone(&self.room).acquire_owned().await.ok()?;
            Some(Room { _of_all: Some(of_all), _of_site: of_site })
        };
        tokio::time::timeout(site.bounds.idle, both).await.ok().flatten()
    }

    /// An answer on trial is used.
    pub fn used(&self, used: Used) {
        lock(&self.seen).used.push(used);
    }

    /// An upstream gave no answer.
    pub fn failed(&self) {
        lock(&self.seen).failed = true;
    }

    /// Whether what the upstream has for this was thrown away in the course of it.
    pub fn threw_away(&self, key: Key) -> bool {
        lock(&self.seen).thrown_away.contains(&key)
    }

    /// It ends: its room is free.
    pub fn end(&self) -> Ended {
        let Seen { used, failed, crowded, .. } = std::mem::take(&mut *lock(&self.seen));
        Ended { used, failed, crowded }
    }
}
