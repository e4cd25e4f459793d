//! HTTP clients by kind of destination. Each resolves names by the rule of its destination.

use std::collections::HashMap;
use std::sync::Mutex;

use reqwest::Client;

use super::sync::lock;
use super::upstream_egress::Destination;

/// A client for each kind of destination, built on first use. `E` is the error of a failed build.
pub struct DestinationClients<E> {
    clients: Mutex<HashMap<Destination, Result<Client, E>>>,
}

impl<E> Default for DestinationClients<E> {
    fn default() -> Self {
        DestinationClients { clients: Mutex::default() }
    }
}

impl<E: Clone> DestinationClients<E> {
    /// Returns the client for this kind of destination, or the error of its build.
    pub fn get_or_build(
        &self,
        destination: Destination,
        build: impl FnOnce() -> Result<Client, E>,
    ) -> Result<Client, E> {
        lock(&self.clients).entry(destination).or_insert_with(build).clone()
    }
}
