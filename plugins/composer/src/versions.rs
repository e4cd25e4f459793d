//! The order of versions, by which ranges of advisories are judged: as Composer compares them.

use packhouse_sdk::Versions;

use crate::Composer;
use crate::version::Version;

/// A version, whichever way it is written.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Compared(Version);

impl Versions for Composer {
    type Version = Compared;

    fn version(text: &str) -> Option<Compared> {
        Version::parse(text).map(Compared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_in_their_own_order() {
        let rising = ["dev-main", "1.0.0-alpha1", "1.0.0-beta2", "1.0.0-RC1", "1.0.0", "1.0.1", "1.10.0.1"];
        for pair in rising.windows(2) {
            let [lower, higher] = [Composer::version(pair[0]), Composer::version(pair[1])];
            assert!(lower.is_some() && lower < higher, "{pair:?}");
        }
        for (one, other) in [("1.0", "v1.0.0.0"), ("1.0.0-RC1", "1.0.0-rc.1")] {
            let [one, other] = [Composer::version(one), Composer::version(other)];
            assert!(one.is_some() && one == other);
        }
        for none in ["", "x"] {
            assert!(Composer::version(none).is_none(), "{none}");
        }
    }
}
