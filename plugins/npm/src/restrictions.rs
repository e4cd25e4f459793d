//! `policyRestrictions` of a packument: versions that policies withhold, and why. npm takes one of them for what is asked for only where no
//! other version will do, and then prints the message instead of fetching it. Other clients do not look at it.

use crate::name::Name;
use semver::Version;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Sentences of a message at most: npm prints it whole, whichever of the versions is wanted.
const TOLD: usize = 12;

/// Versions that are withheld, each with a sentence.
#[derive(Debug, Default)]
pub(crate) struct Restrictions(BTreeMap<String, String>);

impl Restrictions {
    /// Adds what another repository withholds. Of a version that several withhold the first is heard.
    pub(crate) fn add(&mut self, denied: BTreeMap<String, String>) {
        for (number, because) in denied {
            self.0.entry(number).or_insert(because);
        }
    }

    /// The member's value, but for versions that another repository offers; none where there is nothing to tell. The highest versions are
    /// told of first.
    pub(crate) fn told(mut self, name: &Name, is_offered: impl Fn(&str) -> bool) -> Option<Value> {
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
            if sentences.len() > TOLD {
                break;
            }
        }
        let more = sentences.len() > TOLD;
        sentences.truncate(TOLD);
        if more {
            sentences.push("…and so with further versions");
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

    fn told(denied: &[(&str, &str)], offered: &[&str]) -> Option<Value> {
        let mut restrictions = Restrictions::default();
        let denied = denied.iter().map(|(number, because)| ((*number).to_owned(), (*because).to_owned()));
        restrictions.add(denied.collect());
        restrictions.told(&Name::new("lib").unwrap(), |number| offered.contains(&number))
    }

    #[test]
    fn the_highest_are_told_of_first_and_each_sentence_once() {
        let all = [("1.0.0", "old"), ("1.10.0", "new"), ("1.9.0", "newer"), ("2.0.0", "new")];
        let told = told(&all, &[]).unwrap();
        assert_eq!(told["message"], "new\nnewer\nold");
        assert_eq!(told["versions"]["1.9.0"], json!({"name": "lib", "version": "1.9.0"}));
        assert_eq!(told["versions"].as_object().unwrap().len(), 4);
    }

    #[test]
    fn what_another_repository_offers_is_not_restricted() {
        assert_eq!(told(&[("1.0.0", "no")], &["1.0.0"]), None);
        assert_eq!(told(&[], &[]), None);
        let some = told(&[("1.0.0", "no"), ("2.0.0", "neither")], &["1.0.0"]).unwrap();
        assert_eq!((&some["message"], some["versions"].as_object().unwrap().len()), (&json!("neither"), 1));
    }

    #[test]
    fn a_message_is_no_longer_than_can_be_read() {
        let many: Vec<(String, String)> =
            (0..500).map(|at| (format!("1.0.{at}"), format!("no {at}"))).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let told = told(&many, &[]).unwrap();
        let message = told["message"].as_str().unwrap();
        assert_eq!(message.lines().count(), TOLD + 1);
        assert!(message.starts_with("no 499\n") && message.ends_with("further versions"));
    }
}
