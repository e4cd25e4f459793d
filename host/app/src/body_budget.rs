//! Limits on the memory for bodies of API calls, in total and per client network.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packhouse_config::Limits;
use packhouse_config::client_network::ClientNetwork;

/// Memory for request bodies, in total and per client network.
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
    /// Creates the budget from the limits. It always has room for one body of the maximum size.
    pub fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            all: limits.api_bodies_bytes.max(limits.api_body_bytes),
            each: limits.api_bodies_bytes_per_address.max(limits.api_body_bytes),
            held: Mutex::default(),
        })
    }

    /// Returns an empty share for a call from this address.
    pub fn share(self: &Arc<Self>, address: IpAddr) -> Share {
        Share { budget: Arc::clone(self), network: ClientNetwork::of(address), bytes: 0 }
    }

    fn held(&self) -> MutexGuard<'_, HeldBytes> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The limit that was reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NoShare {
    /// The limit for all calls together.
    Server,
    /// The limit for the caller's network.
    Network,
}

/// Part of the budget that the body of one call uses. When the share is dropped, its bytes become
/// available again.
pub struct Share {
    budget: Arc<BodyBudget>,
    network: ClientNetwork,
    bytes: u64,
}

impl Share {
    /// Adds bytes to the share.
    ///
    /// # Errors
    ///
    /// [`NoShare::Server`] if all calls together have reached their limit, [`NoShare::Network`] if
    /// the caller's network has.
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
