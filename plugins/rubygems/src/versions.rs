//! The order of versions, by which ranges of advisories are judged: as `Gem::Version` compares them.

use packhouse_sdk::Versions;

use std::cmp::Ordering;

use crate::RubyGems;
use crate::version::{compare, is_version};

/// The number of a gem, without its platform.
pub struct Number(String);

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

impl Versions for RubyGems {
    type Version = Number;

    fn version(text: &str) -> Option<Number> {
        let number = text.split('-').next().unwrap_or_default();
        is_version(number).then(|| Number(number.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_in_their_own_order() {
        let rising = ["1.0.a", "1.0.b2", "1.0.rc1", "1.0", "1.0.1", "1.0.10", "2"];
        for pair in rising.windows(2) {
            let [lower, higher] = [RubyGems::version(pair[0]), RubyGems::version(pair[1])];
            assert!(lower.is_some() && lower < higher, "{pair:?}");
        }
        for (one, other) in [("1.0", "1.0.0"), ("1.2.3", "1.2.3-x86_64-linux")] {
            let [one, other] = [RubyGems::version(one), RubyGems::version(other)];
            assert!(one.is_some() && one == other);
        }
        for none in ["", "x"] {
            assert!(RubyGems::version(none).is_none(), "{none}");
        }
    }
}
