//! Versions affected by an advisory, by OSV's rules for evaluating ranges. The caller supplies the
//! version order. The host gets the order from the format's plugin; a plugin uses its own.

use serde::{Deserialize, Serialize};

/// Value of `introduced` that precedes all versions.
const BEGINNING: &str = "0";
/// Value of `limit` that means no limit.
const NO_END: &str = "*";

/// Event at a version in the version order. Exactly one of the fields is set.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct RangeEvent {
    /// Versions from this one on are affected; `0` precedes every version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introduced: Option<String>,
    /// Versions from this one on are not affected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
    /// Versions after this one are not affected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_affected: Option<String>,
    /// Versions from this one on are not affected, whatever the other events state. If there are
    /// several limits, the highest applies; `*` means no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

/// Range of versions, given by its events.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct AffectedRange {
    /// Type of the range: `SEMVER` or `ECOSYSTEM`. Ranges of the type `GIT` are ignored, because
    /// their events are commits.
    #[serde(rename = "type")]
    pub kind: String,
    /// Events in any order.
    pub events: Vec<RangeEvent>,
}

/// Versions of a package that an advisory affects: the listed versions, and those within a range.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct AffectedVersions {
    /// Ranges of affected versions.
    pub ranges: Vec<AffectedRange>,
    /// Individually listed versions.
    pub versions: Vec<String>,
}

/// Position of a version in an order; equal versions have the same position. `None` if the text is
/// not a version of the format.
pub type Place = Option<u32>;

impl RangeEvent {
    fn version(&self) -> Option<&str> {
        let fields = [&self.introduced, &self.fixed, &self.last_affected, &self.limit];
        fields.into_iter().flatten().next().map(String::as_str)
    }
}

impl AffectedRange {
    fn is_of_versions(&self) -> bool {
        !self.kind.eq_ignore_ascii_case("GIT")
    }

    /// True if the range covers every version. The version order is then not needed.
    fn is_everything(&self) -> bool {
        let begins = |event: &RangeEvent| event.introduced.as_deref() == Some(BEGINNING);
        let ends = |event: &RangeEvent| {
            event.fixed.is_some()
                || event.last_affected.is_some()
                || event.limit.as_deref().is_some_and(|limit| limit != NO_END)
        };
        self.is_of_versions() && self.events.iter().any(begins) && !self.events.iter().any(ends)
    }

    /// True if the range covers a version at this position. `place` returns the position of an
    /// event's version. An event is ignored if its version is invalid.
    fn covers<'a>(&'a self, at: u32, place: &impl Fn(&'a str) -> Place) -> bool {
        if !self.is_before_limits(at, place) {
            return false;
        }
        let mut events: Vec<(Place, &RangeEvent)> = Vec::with_capacity(self.events.len());
        for event in &self.events {
            match (event.introduced.as_deref(), event.limit.as_ref(), event.version()) {
                (Some(BEGINNING), ..) => events.push((None, event)),
                (None, Some(_), _) | (_, _, None) => {}
                (_, _, Some(version)) => events.extend(place(version).map(|place| (Some(place), event))),
            }
        }
        // `None` is the beginning and sorts before all positions. The sort is stable: events at one
        // position keep their listed order.
        events.sort_by_key(|(place, _)| *place);
        let mut within = false;
        for (place, event) in events {
            match place {
                None => within = true,
                Some(place) if event.introduced.is_some() => within |= at >= place,
                Some(place) if event.fixed.is_some() => within &= at < place,
                Some(place) => within &= at <= place,
            }
        }
        within
    }

    fn is_before_limits<'a>(&'a self, at: u32, place: &impl Fn(&'a str) -> Place) -> bool {
        let mut limits = self.events.iter().filter_map(|event| event.limit.as_deref()).peekable();
        limits.peek().is_none()
            || limits.any(|limit| limit == NO_END || place(limit).is_some_and(|limit| at < limit))
    }
}

impl AffectedVersions {
    /// Returns all versions that the ranges and the list name, possibly with duplicates.
    /// [`covers`](AffectedVersions::covers) needs their positions.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        let ranges = self.ranges.iter().filter(|range| range.is_of_versions());
        let events = ranges.flat_map(|range| range.events.iter().filter_map(RangeEvent::version));
        let versions = events.filter(|version| *version != BEGINNING && *version != NO_END);
        versions.chain(self.versions.iter().map(String::as_str))
    }

    /// True if the version is known to be affected without an order: the same text is listed, or
    /// every version is affected.
    pub fn covers_without_order(&self, version: &str) -> bool {
        self.versions.iter().any(|listed| listed == version)
            || self.ranges.iter().any(AffectedRange::is_everything)
    }

    /// True if this version is affected; `place` returns positions in the version order. A text
    /// that is not a version of the format is affected if it is listed, or if all versions are
    /// affected.
    ///
    /// ```
    /// use packhouse_names::AffectedVersions;
    /// let text = r#"{"ranges":
    ///     [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "3"}]}]}"#;
    /// let affected: AffectedVersions = serde_json::from_str(text).unwrap();
    /// let place = |version: &str| version.parse().ok();
    /// assert!(affected.covers("2", place) && !affected.covers("3", place));
    /// ```
    pub fn covers<'a>(&'a self, version: &'a str, place: impl Fn(&'a str) -> Place) -> bool {
        if self.covers_without_order(version) {
            return true;
        }
        let Some(at) = place(version) else { return false };
        self.versions.iter().any(|listed| place(listed) == Some(at))
            || self.ranges.iter().any(|range| range.is_of_versions() && range.covers(at, &place))
    }

    /// Returns the versions that fix the vulnerability, in the listed order, without duplicates.
    pub fn fixed(&self) -> Vec<&str> {
        let ranges = self.ranges.iter().filter(|range| range.is_of_versions());
        let mut fixed: Vec<&str> = Vec::new();
        for version in ranges.flat_map(|range| &range.events).filter_map(|event| event.fixed.as_deref()) {
            if !fixed.contains(&version) {
                fixed.push(version);
            }
        }
        fixed
    }
}

/// Returns the positions of these versions in the order of their keys, starting at 0. `read` parses
/// a version into its key. Versions with equal keys have the same position, and a version without a
/// key has none.
pub fn places<K: Ord>(versions: &[impl AsRef<str>], read: impl Fn(&str) -> Option<K>) -> Vec<Place> {
    let keys: Vec<Option<K>> = versions.iter().map(|version| read(version.as_ref())).collect();
    let mut order: Vec<(&K, usize)> =
        keys.iter().enumerate().filter_map(|(at, key)| key.as_ref().map(|key| (key, at))).collect();
    order.sort_by_key(|(one, _)| *one);
    let (mut places, mut next, mut last) = (vec![None; keys.len()], 0_u32, None);
    for (key, at) in order {
        if last.is_some_and(|last: &K| last.cmp(key).is_ne()) {
            next = next.saturating_add(1);
        }
        last = Some(key);
        if let Some(place) = places.get_mut(at) {
            *place = Some(next);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn affected(text: &str) -> AffectedVersions {
        serde_json::from_str(text).unwrap()
    }

    fn number(version: &str) -> Place {
        version.parse().ok()
    }

    fn range(events: &str) -> AffectedVersions {
        affected(&format!(r#"{{"ranges": [{{"type": "ECOSYSTEM", "events": {events}}}]}}"#))
    }

    #[test]
    fn events_are_judged_as_osv_says() {
        for (events, within, without) in [
            (r#"[{"introduced": "0"}]"#, &["0", "7", "no version"][..], &[][..]),
            (r#"[{"introduced": "2"}]"#, &["2", "9"], &["1", "no version"]),
            (r#"[{"fixed": "5"}, {"introduced": "2"}]"#, &["2", "4"], &["1", "5", "6"]),
            (r#"[{"introduced": "0"}, {"last_affected": "5"}]"#, &["0", "5"], &["6"]),
            (
                r#"[{"introduced": "0"}, {"fixed": "2"}, {"introduced": "4"}, {"fixed": "6"}]"#,
                &["1", "4", "5"],
                &["2", "3", "6"],
            ),
            (
                r#"[{"introduced": "1"}, {"fixed": "2"}, {"introduced": "2"}, {"fixed": "3"}]"#,
                &["1", "2"],
                &["3"],
            ),
            (r#"[{"introduced": "0"}, {"limit": "4"}]"#, &["3"], &["4", "5"]),
            (r#"[{"introduced": "0"}, {"limit": "4"}, {"limit": "6"}]"#, &["5"], &["6"]),
            (r#"[{"introduced": "0"}, {"limit": "*"}]"#, &["5"], &[]),
            (r#"[{"introduced": "0"}, {"fixed": "what"}]"#, &["5"], &["no version"]),
            (r#"[{"introduced": "what"}]"#, &[], &["5"]),
            ("[]", &[], &["1"]),
        ] {
            let affected = range(events);
            for version in within {
                assert!(affected.covers(version, number), "{events} {version}");
            }
            for version in without {
                assert!(!affected.covers(version, number), "{events} {version}");
            }
        }
    }

    #[test]
    fn listed_versions_count_as_they_are_written_and_as_they_are_ordered() {
        let listed = affected(r#"{"versions": ["2", "x"]}"#);
        assert!(listed.covers("02", number) && listed.covers("x", number));
        assert!(!listed.covers("3", number) && !listed.covers("y", number));
    }

    #[test]
    fn ranges_of_commits_are_ignored() {
        let commits = affected(r#"{"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]}"#);
        assert!(!commits.covers("1", number) && commits.named().next().is_none());
    }

    #[test]
    fn each_fix_is_listed_once() {
        let both =
            r#"[{"introduced": "0"}, {"fixed": "2"}, {"introduced": "4"}, {"fixed": "2"}, {"fixed": "6"}]"#;
        assert_eq!(range(both).fixed(), ["2", "6"]);
        assert_eq!(range(both).named().collect::<Vec<_>>(), ["2", "4", "2", "6"]);
    }

    #[test]
    fn places_follow_the_order_and_equals_share_one() {
        let read = |text: &str| text.parse::<u32>().ok();
        assert_eq!(places(&["30", "x", "4", "030"], read), [Some(1), None, Some(0), Some(1)]);
        assert_eq!(places::<u32>(&[] as &[&str], read), []);
    }

    proptest! {
        /// Generates ranges that do not touch, and shuffles their events. A version is affected if
        /// it is within one of the ranges.
        #[test]
        fn the_order_of_events_does_not_matter(
            steps in prop::collection::vec(1_u32..20, 2..12), version in 0_u32..240, seed in any::<u64>()
        ) {
            let (mut at, mut pairs, mut events) = (0, Vec::new(), Vec::new());
            for pair in steps.chunks_exact(2) {
                let (from, to) = (at + pair[0], at + pair[0] + pair[1]);
                at = to + 1;
                pairs.push((from, to));
                events.push(RangeEvent { introduced: Some(from.to_string()), ..RangeEvent::default() });
                events.push(RangeEvent { fixed: Some(to.to_string()), ..RangeEvent::default() });
            }
            let count = events.len();
            events.rotate_left(usize::try_from(seed % 64).unwrap() % count);
            events.swap(0, usize::try_from((seed >> 8) & 63).unwrap() % count);
            let ranges = vec![AffectedRange { kind: "SEMVER".to_owned(), events }];
            let affected = AffectedVersions { ranges, versions: Vec::new() };
            let inside = pairs.iter().any(|(from, to)| (*from..*to).contains(&version));
            prop_assert_eq!(affected.covers(&version.to_string(), number), inside);
        }
    }
}
