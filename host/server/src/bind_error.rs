//! The error message for a listener that cannot bind its address, used by the start and by
//! `packhouse doctor`.

use packhouse_config::Config;

/// Describes why a listener cannot bind its address, and what to do.
pub(crate) fn bind_error(config: &Config, name: &str, error: &std::io::Error) -> String {
    let label = config.sources.label(name);
    let remedy = match error.kind() {
        std::io::ErrorKind::AddrInUse => "stop the program that uses this port, or set another port",
        std::io::ErrorKind::PermissionDenied => {
            "ports below 1024 need CAP_NET_BIND_SERVICE; set a higher port, or grant the program this capability"
        }
        std::io::ErrorKind::AddrNotAvailable => {
            "set an address of this machine: 127.0.0.1 for local clients only, or 0.0.0.0 for all interfaces"
        }
        _ => "set HOST:PORT of this machine, such as 127.0.0.1:8080",
    };
    format!("{label}: failed to listen on this address: {error}; {remedy}")
}
