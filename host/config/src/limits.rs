//! Limits of connections and bodies: the settings under `limits`.

use std::time::Duration;

use crate::{ConfigError, SettingsReader, values};

/// Limits of connections and bodies, on both hosts unless the name says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest body of an API call, in bytes.
    pub api_body_bytes: u64,
    /// Maximum number of JSON tokens in the body of an API call.
    pub api_json_tokens: u64,
    /// Maximum total size of the API call bodies that the server reads at the same time, in bytes.
    pub api_bodies_bytes: u64,
    /// Maximum total size of those bodies from one client address, in bytes.
    pub api_bodies_bytes_per_address: u64,
    /// Minimum rate at which the body of an API call must arrive, in bytes a second.
    pub api_body_rate: u64,
    /// Time limit for the next byte of a request body with a declared length.
    pub body_idle: Duration,
    /// Time limit within which a client must read the next byte of a response.
    pub send_idle: Duration,
    /// Time after which an idle connection is closed.
    pub idle: Duration,
    /// Time limit for the PROXY header and the TLS handshake, before the first request.
    pub handshake: Duration,
    /// Time limit for the head of a request.
    pub header: Duration,
    /// Maximum number of concurrent connections on each listener.
    pub connections: usize,
    /// Maximum number of concurrent connections from one client address.
    pub connections_per_address: usize,
    /// Maximum number of requests a second with the credentials of one organization; 0 means no
    /// limit.
    pub organization_request_rate: u32,
    /// Maximum number of requests a second with one credential, or from one address without a
    /// credential; 0 means no limit.
    pub credential_request_rate: u32,
    /// Time during which a stopping server still serves requests but reports that it is not ready.
    pub drain: Duration,
    /// Time limit of a stop, from the moment at which the server stops listening.
    pub shutdown: Duration,
}

impl Limits {
    /// Returns the time for requests in flight during a stop. The rest of `shutdown` is for closing
    /// the store.
    pub fn in_flight(&self) -> Duration {
        self.shutdown.saturating_sub((self.shutdown / 4).min(MOST_FOR_CLOSING))
    }

    /// Returns the time limit of the whole stop. The server abandons tasks that are still running
    /// then.
    pub fn whole_stop(&self) -> Duration {
        self.shutdown.max(LEAST_FOR_STOPPING)
    }
}

/// Maximum time that is reserved for closing the store.
const MOST_FOR_CLOSING: Duration = Duration::from_secs(2);
/// Minimum time limit of a stop, whatever the setting says. It is usually enough to close the
/// store.
const LEAST_FOR_STOPPING: Duration = Duration::from_millis(250);

impl SettingsReader<'_> {
    pub(crate) fn limits(&self) -> Result<Limits, ConfigError> {
        Ok(Limits {
            api_body_bytes: self.parse("limits.api_body_bytes", values::bytes)?,
            api_json_tokens: self.parse("limits.api_json_tokens", values::count)?,
            api_bodies_bytes: self.parse("limits.api_bodies_bytes", values::bytes)?,
            api_bodies_bytes_per_address: self.parse("limits.api_bodies_bytes_per_address", values::bytes)?,
            api_body_rate: self.parse("limits.api_body_rate", values::bytes)?,
            body_idle: self.millis("limits.body_idle_ms")?,
            send_idle: self.millis("limits.send_idle_ms")?,
            idle: self.millis("limits.idle_ms")?,
            handshake: self.parse("limits.handshake_ms", values::some_millis)?,
            header: self.millis("limits.header_ms")?,
            connections: self.number("limits.connections")?,
            connections_per_address: self.number("limits.connections_per_address")?,
            organization_request_rate: self.parse("limits.organization_request_rate", values::rate)?,
            credential_request_rate: self.parse("limits.credential_request_rate", values::rate)?,
            drain: self.drain()?,
            shutdown: self.millis("limits.shutdown_ms")?,
        })
    }
}
