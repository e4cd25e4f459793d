//! What a panic says, where it is heard: an instance that ends tells nobody why.

use std::sync::Once;

use super::generated::packhouse::format::host;

/// From now on a panic's message and place are in the host's log, under the request's id. In `describe` and `route`, from which nothing can
/// be logged, they are part of the failure that the host reports.
pub(super) fn are_heard() {
    static HEARD: Once = Once::new();
    HEARD.call_once(|| {
        std::panic::set_hook(Box::new(|panic| host::log("error", &panic.to_string(), &[])));
    });
}
