//! `policyRestrictions` of a packument: the versions that policies withhold, and a message with the
//! reasons. npm selects a withheld version only if no other version satisfies the request. npm then
//! prints the message instead of fetching the version. Other clients ignore this member.

use crate::name::PackageName;
use semver::Version;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Maximum number of sentences of a message. npm prints the whole message, whichever version is
/// requested.
const MAX_SENTENCES: usize = 12;

/// Withheld versions, each with a sentence that states the reason.
#[derive(Debug, Default)]
pub(crate) struct Restrictions(BTreeMap<String, String>);

impl Restrictions {
    /// Adds the versions that another repository withholds. If several repositories withhold a
    /// version, the first reason stays.
    pub(crate) fn add(&mut self, denied: BTreeMap<String, String>) {
        for (number, because) in denied {
            self.0.entry(number).or_insert(because);
        }
    }

    /// Returns the value of `policyRestrictions`, without versions that another repository offers.
    /// Returns `None` if no version is left. The message begins with the sentences of the highest
    /// versions.
    pub(crate) fn into_json(
        mut self,
        name: &PackageName,
        is_offered: impl Fn(&str) -> bool,
    ) -> Option<Value> {
        self.0.retain(|number, _| !is_offered(number));
        if self.0.is_empty() {
            return None;
        }
        let mut numbers: Vec<&String> = self.0.keys().collect();
        numbers.sort_by_cached_key(|number| Reverse(Version::parse(number).ok()));
        let mut sentences: Vec<&str> = Vec::new();
        for because in numbers.iter().filter_map(|number| self.0.get(*number)) {
            if !sentences.contains(&because.as_str()) {
                sentences.push(because);
            }
            if sentences.len() > MAX_SENTENCES {
                break;
            }
        }
        let more = sentences.len() > MAX_SENTENCES;
        sentences.truncate(MAX_SENTENCES);
        if more {
            sentences.push("…and more versions are withheld");
        }
        let versions: Map<String, Value> = self
            .0
            .keys()
            .map(|number| (number.clone(), json!({"name": name.as_str(), "version": number})))
            .collect();
        Some(json!({"message": sentences.join("\n"), "versions": versions}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restricted(denied: &[(&str, &str)], offered: &[&str]) -> Option<Value> {
        let mut restrictions = Restrictions::default();
        let denied = denied.iter().map(|(number, because)| ((*number).to_owned(), (*because).to_owned()));
        restrictions.add(denied.collect());
        restrictions.into_json(&PackageName::new("lib").unwrap(), |number| offered.contains(&number))
    }

    #[test]
    fn the_highest_versions_come_first_and_each_sentence_once() {
        let all = [("1.0.0", "old"), ("1.10.0", "new"), ("1.9.0", "newer"), ("2.0.0", "new")];
        let restricted = restricted(&all, &[]).unwrap();
        assert_eq!(restricted["message"], "new\nnewer\nold");
        assert_eq!(restricted["versions"]["1.9.0"], json!({"name": "lib", "version": "1.9.0"}));
        assert_eq!(restricted["versions"].as_object().unwrap().len(), 4);
    }

    #[test]
    fn a_version_that_another_repository_offers_is_not_restricted() {
        assert_eq!(restricted(&[("1.0.0", "no")], &["1.0.0"]), None);
        assert_eq!(restricted(&[], &[]), None);
        let some = restricted(&[("1.0.0", "no"), ("2.0.0", "neither")], &["1.0.0"]).unwrap();
        assert_eq!((&some["message"], some["versions"].as_object().unwrap().len()), (&json!("neither"), 1));
    }

    #[test]
    fn the_length_of_a_message_is_limited() {
        let many: Vec<(String, String)> =
            (0..500).map(|at| (format!("1.0.{at}"), format!("no {at}"))).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let restricted = restricted(&many, &[]).unwrap();
        let message = restricted["message"].as_str().unwrap();
        assert_eq!(message.lines().count(), MAX_SENTENCES + 1);
        assert!(message.starts_with("no 499\n") && message.ends_with("more versions are withheld"));
    }
}
