//! Unique id of each request. The response, the log lines and the plugin's log carry it.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use rand::Rng;

static PROCESS: LazyLock<String> = LazyLock::new(|| format!("{:016x}", rand::rng().next_u64()));
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Returns a new id: 16 hexadecimal digits that each process chooses at random, then the number of
/// the request in 8 hexadecimal digits.
pub fn next() -> Arc<str> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut id = String::with_capacity(24);
    id.push_str(&PROCESS);
    // Writing to a string never fails.
    let _ = write!(id, "{number:08x}");
    id.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same() {
        let (one, two) = (next(), next());
        assert_ne!(one, two);
        assert!(one.len() == 24 && one.bytes().all(|b| b.is_ascii_hexdigit()));
    }
}
