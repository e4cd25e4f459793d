//! How many bytes of bodies of API calls may be in memory at one time, of all calls and of each network.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packhouse_config::Limits;
use packhouse_config::client_network::ClientNetwork;

/// Bytes of bodies that are in memory, of all calls and by network.
pub struct BodyBudget {
    all: u64,
    each: u64,
    held: Mutex<HeldBytes>,
}

#[derive(Default)]
struct HeldBytes {
    all: u64,
    networks: HashMap<ClientNetwork, u64>,
}

impl BodyBudget {
    /// As the limits say; one body of the largest size always finds room.
    pub fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            all: limits.api_bodies_bytes.max(limits.api_body_bytes),
            each: limits.api_bodies_bytes_per_address.max(limits.api_body_bytes),
            held: Mutex::default(),
        })
    }

    /// The share of a call from this address, empty at first.
    pub fn share(self: &Arc<Self>, address: IpAddr) -> Share {
        Share { budget: Arc::clone(self), network: ClientNetwork::of(address), bytes: 0 }
    }

    fn held(&self) -> MutexGuard<'_, HeldBytes> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose bytes are used up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NoShare {
    /// All calls'.
    Server,
    /// Those of the caller's network.
    Network,
}

/// What one call's body takes of the budget; given back when it is dropped.
pub struct Share {
    budget: Arc<BodyBudget>,
    network: ClientNetwork,
    bytes: u64,
}

impl Share {
    /// Takes more.
    ///
    /// # Errors
    ///
    /// [`NoShare::Server`] where all calls together have as much as they may, [`NoShare::Network`] where those of the caller's
    /// network have.
    pub fn grow(&mut self, bytes: u64) -> Result<(), NoShare> {
        let mut held = self.budget.held();
        if held.all + bytes > self.budget.all {
            return Err(NoShare::Server);
        }
        let of_network = held.networks.get(&self.network).copied().unwrap_or_default() + bytes;
        if of_network > self.budget.each {
            return Err(NoShare::Network);
        }
        held.networks.insert(self.network, of_network);
        held.all += bytes;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.budget.held();
        held.all -= self.bytes;
        if let Entry::Occupied(mut entry) = held.networks.entry(self.network) {
            *entry.get_mut() = entry.get().saturating_sub(self.bytes);
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}
