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
use packhouse_config::Limits;
use packhouse_config::client_network::ClientNetwork;
use packhouse_config::live::Live;

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
    limits: Live<Limits>,
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
    _place: OwnedSemaphorePermit,
}

impl Admission {
    pub(super) fn new(rules: &Rules) -> Arc<Self> {
        let total = rules.connections;
        Arc::new(Self {
            places: Arc::new(Semaphore::new(total)),
            total,
            limits: rules.limits.clone(),
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

    /// How many connections one network may have: never all of them.
    fn per_network(&self) -> usize {
        self.limits.get().connections_per_address.min(self.total.div_ceil(2)).max(1)
    }

    /// Closes connections that are idle for too long, for ever.
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

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Counts one more connection of the network, unless it has as many as it may.
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
    /// A proxy has said whose connection it is: from now on it counts as theirs. False where they have as many as they may.
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
    async fn a_connection_counts_as_its_clients_and_one_of_a_proxy_as_the_named_clients() {
        let trusted = Live::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let rules = Rules { trusted, ..rules(&CancellationToken::new()) };
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
