//! File descriptors. The process needs one for each open file and socket. This module raises their
//! maximum number to the system's limit and divides it among connections, requests and cached
//! responses. So even with many clients, every request gets the descriptors that it needs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for the database, plugins, log, listeners and idle connections to upstreams.
const OWN: u64 = 96;
/// Descriptors of one request besides its connection: the upstream's socket, the fetched file, its
/// folder, and one in reserve.
const PER_REQUEST: u64 = 4;
/// Number of listeners, each with the configured number of connections.
const LISTENERS: u64 = 2;
/// Maximum files that cached responses keep open.
const MOST_CACHED_FILES: u64 = 16 * 1024;

/// Division of the descriptors among their users.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shares {
    /// Maximum connections on each listener.
    pub connections: usize,
    /// Maximum concurrent requests on the repository host.
    pub requests: usize,
    /// Maximum stored files that cached responses keep open.
    pub cached_files: usize,
}

impl Shares {
    /// Divides the descriptors that the process may use now, with at most this many connections on
    /// each listener.
    pub fn of_process(connections: usize) -> Self {
        Self::of(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), connections)
    }

    fn of(descriptors: u64, connections: usize) -> Self {
        let free = descriptors.saturating_sub(OWN).max(OWN / 2);
        let fifths = free / 5;
        let number = |share: u64| usize::try_from(share).unwrap_or(usize::MAX);
        Self {
            connections: connections.min(number(2 * fifths / LISTENERS)).max(1),
            // A semaphore cannot have more permits than this.
            requests: number(2 * fifths / PER_REQUEST).clamp(1, tokio::sync::Semaphore::MAX_PERMITS),
            cached_files: number(fifths.min(MOST_CACHED_FILES)),
        }
    }
}

/// Raises the number of descriptors that the process may open to the maximum that the system
/// allows. The number stays unchanged if the system refuses.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::info!(%error, "raising the limit of open files failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_requests_and_cached_files_never_take_more_than_there_are() {
        for descriptors in [256, 1024, 20_000, 1 << 20] {
            let shares = Shares::of(descriptors, 10_000);
            let taken = LISTENERS * shares.connections as u64
                + PER_REQUEST * shares.requests as u64
                + shares.cached_files as u64;
            assert!(taken + OWN <= descriptors, "{descriptors}: {shares:?}");
            assert!(shares.connections >= 32 && shares.requests >= 16, "{descriptors}: {shares:?}");
        }
    }

    #[test]
    fn with_enough_descriptors_the_setting_applies() {
        assert_eq!(Shares::of(1 << 20, 10_000).connections, 10_000);
        assert_eq!(Shares::of(u64::MAX, 5).connections, 5);
    }
}
