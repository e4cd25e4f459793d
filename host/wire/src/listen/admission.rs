//! Which connections are let in, and which are sent away when nothing is under way on them. No network has more than its share of
//! them; where they become scarce, idle ones go sooner.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Rules;
use crate::connection::ConnectionState;
use packhouse_config::client_network::ClientNetwork;

/// How long a connection may be idle while few places are left.
const SCARCE_IDLE: Duration = Duration::from_secs(5);
/// Places are scarce when fewer than one in so many are free.
const SCARCE_SHARE: usize = 8;
/// How often idle connections are looked for at least.
const LOOK: Duration = Duration::from_secs(1);

/// The connections of one listener.
pub(super) struct Admission {
    places: Arc<Semaphore>,
    total: usize,
    per_network: usize,
    idle: Duration,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    connections: HashMap<u64, Arc<ConnectionState>>,
    networks: HashMap<ClientNetwork, usize>,
}

/// A connection that was let in; its place is free again when this is dropped.
pub(super) struct Admitted {
    pub(super) state: Arc<ConnectionState>,
    admission: Arc<Admission>,
    id: u64,
    network: Option<ClientNetwork>,
    _place: OwnedSemaphorePermit,
}

impl Admission {
    pub(super) fn new(rules: &Rules) -> Arc<Self> {
        let total = rules.connections;
        Arc::new(Self {
            places: Arc::new(Semaphore::new(total)),
            total,
            // One network alone never takes them all.
            per_network: rules.limits.connections_per_address.min(total.div_ceil(2)).max(1),
            idle: rules.limits.idle,
            open: Mutex::default(),
        })
    }

    /// A place for the next connection, once there is one.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Lets a connection in; none where its network has as many as it may. A trusted proxy stands for many clients, and is not counted.
    pub(super) fn admit(
        self: &Arc<Self>,
        peer: IpAddr,
        place: OwnedSemaphorePermit,
        rules: &Rules,
    ) -> Option<Admitted> {
        let trusted = rules.trusted.iter().any(|network| network.contains(peer));
        let network = (!trusted).then(|| ClientNetwork::of(peer));
        let mut open = self.open();
        if let Some(network) = network {
            let count = open.networks.entry(network).or_default();
            if *count >= self.per_network {
                return None;
            }
            *count += 1;
        }
        let (id, state) = (open.next, ConnectionState::until(&rules.stop));
        open.next += 1;
        open.connections.insert(id, Arc::clone(&state));
        Some(Admitted { state, admission: Arc::clone(self), id, network, _place: place })
    }

    /// Closes connections that are idle for too long, for ever.
    pub(super) async fn close_idle(&self) {
        let pause = (self.idle / 4).clamp(Duration::from_millis(10), LOOK);
        loop {
            tokio::time::sleep(pause).await;
            let scarce = self.places.available_permits() < self.total.div_ceil(SCARCE_SHARE);
            let longest = if scarce { self.idle.min(SCARCE_IDLE) } else { self.idle };
            let open = self.open();
            let idle = |state: &&Arc<ConnectionState>| state.idle_for().is_some_and(|idle| idle >= longest);
            open.connections.values().filter(idle).for_each(|state| state.close());
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut open = self.admission.open();
        open.connections.remove(&self.id);
        if let Some(Entry::Occupied(mut count)) = self.network.map(|network| open.networks.entry(network)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}
