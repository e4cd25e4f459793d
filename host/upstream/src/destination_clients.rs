//! HTTP clients by where their requests go: each looks names up by the rule of its kind of
//! destination.

use std::collections::HashMap;
use std::sync::Mutex;

use reqwest::Client;

use super::sync::lock;
use super::upstream_egress::Destination;

/// One client for each kind of destination, built when it is first needed. `E` is why one cannot be
/// built.
pub struct DestinationClients<E> {
    clients: Mutex<HashMap<Destination, Result<Client, E>>>,
}

impl<E> Default for DestinationClients<E> {
    fn default() -> Self {
        DestinationClients { clients: Mutex::default() }
    }
}

impl<E: Clone> DestinationClients<E> {
    /// The client for this kind of destination, or why there is none.
    pub fn get_or_build(
        &self,
        destination: Destination,
        build: impl FnOnce() -> Result<Client, E>,
    ) -> Result<Client, E> {
        lock(&self.clients).entry(destination).or_insert_with(build).clone()
    }
}
