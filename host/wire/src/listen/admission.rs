//! Admission of connections and closing of idle ones. Each client network gets a limited share of
//! the connections. When few connection slots are left, idle connections are closed sooner.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ListenerRules;
use crate::connection::ConnectionState;
use packhouse_config::Limits;
use packhouse_config::client_network::ClientNetwork;
use packhouse_config::live::Live;

/// How long a connection may be idle while few slots are left.
const SCARCE_IDLE: Duration = Duration::from_secs(5);
/// Slots are scarce when less than this fraction (1/8) of them is free.
const SCARCE_SHARE: usize = 8;
/// Longest interval between checks for idle connections.
const LOOK: Duration = Duration::from_secs(1);

/// Admission of connections on one listener.
pub(super) struct Admission {
    places: Arc<Semaphore>,
    total: usize,
    limits: Live<Limits>,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    connections: HashMap<u64, Arc<ConnectionState>>,
    networks: HashMap<ClientNetwork, usize>,
}

/// An admitted connection; dropping it frees its slot.
pub(super) struct Admitted {
    pub(super) state: Arc<ConnectionState>,
    admission: Arc<Admission>,
    id: u64,
    _place: OwnedSemaphorePermit,
}

impl Admission {
    pub(super) fn new(rules: &ListenerRules) -> Arc<Self> {
        let total = rules.connections;
        Arc::new(Self {
            places: Arc::new(Semaphore::new(total)),
            total,
            limits: rules.limits.clone(),
            open: Mutex::default(),
        })
    }

    /// Waits for a free slot for the next connection.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Admits a connection; `None` if its network has reached its limit. Connections of a trusted
    /// proxy are not counted, because a proxy serves many clients.
    pub(super) fn admit(
        self: &Arc<Self>,
        peer: IpAddr,
        place: OwnedSemaphorePermit,
        rules: &ListenerRules,
    ) -> Option<Admitted> {
        let trusted = rules.trusted.get().iter().any(|network| network.contains(peer));
        let network = (!trusted).then(|| ClientNetwork::of(peer));
        let mut open = self.open();
        if network.is_some_and(|network| !open.count(network, self.per_network())) {
            return None;
        }
        let id = open.next;
        let state = ConnectionState::until(&rules.stop, Arc::clone(&rules.budget), network);
        open.next += 1;
        open.connections.insert(id, Arc::clone(&state));
        Some(Admitted { state, admission: Arc::clone(self), id, _place: place })
    }

    /// Returns how many connections one network may have; never more than half of all.
    fn per_network(&self) -> usize {
        self.limits.get().connections_per_address.min(self.total.div_ceil(2)).max(1)
    }

    /// Closes connections that are idle for too long. Runs forever.
    pub(super) async fn close_idle(&self) {
        loop {
            let most = self.limits.get().idle;
            tokio::time::sleep((most / 4).clamp(Duration::from_millis(10), LOOK)).await;
            let scarce = self.places.available_permits() < self.total.div_ceil(SCARCE_SHARE);
            let longest = if scarce { most.min(SCARCE_IDLE) } else { most };
            let open = self.open();
            let idle = |state: &&Arc<ConnectionState>| state.idle_for().is_some_and(|idle| idle >= longest);
            open.connections.values().filter(idle).for_each(|state| state.close());
        }
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    /// Counts a new connection of the network unless the network has reached its limit. Returns
    /// whether the connection was counted.
    fn count(&mut self, network: ClientNetwork, most: usize) -> bool {
        let count = self.networks.entry(network).or_default();
        let fits = *count < most;
        *count += usize::from(fits);
        fits
    }

    fn uncount(&mut self, network: ClientNetwork) {
        if let Entry::Occupied(mut count) = self.networks.entry(network) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Admitted {
    /// Counts the connection towards the limit of the client that a proxy has named. Returns false
    /// if the client's network has reached its limit.
    pub(super) fn belongs_to(&self, client: IpAddr) -> bool {
        let network = ClientNetwork::of(client);
        let mut open = self.admission.open();
        if !open.count(network, self.admission.per_network()) {
            return false;
        }
        if let Some(before) = self.state.set_network(network) {
            open.uncount(before);
        }
        true
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut open = self.admission.open();
        open.connections.remove(&self.id);
        if let Some(network) = self.state.network() {
            open.uncount(network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rules;
    use super::*;
    use tokio_util::sync::CancellationToken;

    #[tokio::test]
    async fn a_connection_counts_for_its_client_or_the_client_named_by_a_proxy() {
        let trusted = Live::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let rules = ListenerRules { trusted, ..rules(&CancellationToken::new()) };
        let admission = Admission::new(&rules);
        let admit = async |peer: IpAddr| {
            let place = admission.place().await.unwrap();
            admission.admit(peer, place, &rules).unwrap()
        };
        let client = IpAddr::from([192, 0, 2, 1]);
        let (direct, proxied) = (admit(client).await, admit([10, 0, 0, 1].into()).await);
        assert_eq!(direct.state.network(), Some(ClientNetwork::of(client)));
        assert_eq!(proxied.state.network(), None);
        assert!(proxied.belongs_to(client));
        assert_eq!(proxied.state.network(), direct.state.network());
        drop((direct, proxied));
        assert!(admission.open().networks.is_empty());
    }
}
