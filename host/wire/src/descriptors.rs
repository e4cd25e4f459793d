//! Descriptors: files and sockets that the process may have open. Their number is raised to what the system allows and shared out among
//! connections, requests and cached responses, so that a crowd of clients never leaves a request without the file that it needs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For the database, the plugins, the log, the listeners and connections to upstreams that are kept open.
const OWN: u64 = 96;
/// What one request may have open besides its connection: an upstream's socket, the file that it brings, its folder, and one to spare.
const PER_REQUEST: u64 = 4;
/// Listeners with as many connections as the setting says.
const LISTENERS: u64 = 2;
/// The most files that cached responses hold open.
const MOST_CACHED_FILES: u64 = 16 * 1024;

/// How many descriptors each may have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shares {
    /// Connections on each listener.
    pub connections: usize,
    /// Requests under way on the repository host.
    pub requests: usize,
    /// Stored files that cached responses hold open.
    pub cached_files: usize,
}

impl Shares {
    /// Of the descriptors that the process may have now, with at most so many connections on each listener.
    pub fn of_process(connections: usize) -> Self {
        Self::of(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), connections)
    }

    fn of(descriptors: u64, connections: usize) -> Self {
        let free = descriptors.saturating_sub(OWN).max(OWN / 2);
        let fifths = free / 5;
        let number = |share: u64| usize::try_from(share).unwrap_or(usize::MAX);
        Self {
            connections: connections.min(number(2 * fifths / LISTENERS)).max(1),
            // A semaphore has no more places than this.
            requests: number(2 * fifths / PER_REQUEST).clamp(1, tokio::sync::Semaphore::MAX_PERMITS),
            cached_files: number(fifths.min(MOST_CACHED_FILES)),
        }
    }
}

/// Raises the number of descriptors to what the system allows this process. Where that fails the number stays as it is.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::info!(%error, "the number of open files could not be raised");
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
    fn where_there_are_enough_the_setting_counts() {
        assert_eq!(Shares::of(1 << 20, 10_000).connections, 10_000);
        assert_eq!(Shares::of(u64::MAX, 5).connections, 5);
    }
}
