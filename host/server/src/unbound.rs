//! A listener that cannot have its address: said in the same words by the start and by `packhouse doctor`.

use packhouse_config::Config;

/// Why a listener cannot have its address, and what to do.
pub(crate) fn unbound(config: &Config, name: &str, error: &std::io::Error) -> String {
    let label = config.sources.label(name);
    let remedy = match error.kind() {
        std::io::ErrorKind::AddrInUse => "stop the program that listens there, or write another port",
        std::io::ErrorKind::PermissionDenied => {
            "ports below 1024 need CAP_NET_BIND_SERVICE; write a higher one, or give it to the program"
        }
        std::io::ErrorKind::AddrNotAvailable => {
            "write an address that this machine has, 127.0.0.1 for itself alone or 0.0.0.0 for all"
        }
        _ => "write HOST:PORT of this machine, as in 127.0.0.1:8080",
    };
    format!("{label}: failed to listen there: {error}; {remedy}")
}
