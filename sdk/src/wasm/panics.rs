//! Hook that writes panics to the host's log. Without it, a panic would end the instance without a
//! reason.

use std::sync::Once;

use super::generated::packhouse::format::host;

/// Writes the message and place of later panics to the host's log, under the request's id. In
/// `describe` and `route`, which cannot log, the message becomes part of the error that the host
/// logs.
pub(super) fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        std::panic::set_hook(Box::new(|panic| host::log("error", &panic.to_string(), &[])));
    });
}
