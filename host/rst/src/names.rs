//! Targets of references, and substitutions. They are collected from the whole text first, because
//! they may be defined after their use.

use std::collections::{HashMap, VecDeque};

use crate::lines::indent;

/// Maximum number of targets, and of substitutions.
const MOST: usize = 2000;
/// Maximum size of an address and of a substitution's text, since each may be written many times.
const LONGEST: usize = 2048;
/// Maximum number of indirect targets that are followed.
const HOPS: usize = 4;

/// Replacement text of a substitution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Substitution {
    pub(crate) text: String,
    /// Address of the link, for an image that is a link.
    pub(crate) target: Option<String>,
}

/// Targets and substitutions of a text.
#[derive(Default, Debug)]
pub(crate) struct Names {
    targets: HashMap<String, String>,
    anonymous: VecDeque<String>,
    substitutions: HashMap<String, Substitution>,
}

impl Names {
    /// Collects the targets and substitutions of a text.
    pub(crate) fn of(lines: &[&str]) -> Names {
        let mut names = Names::default();
        let mut waiting: Vec<String> = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let text = line.trim_start();
            if let Some(address) = text.strip_prefix("__ ").or_else(|| text.strip_prefix(".. __: ")) {
                if names.anonymous.len() < MOST && address.len() <= LONGEST {
                    names.anonymous.push_back(address.trim().to_owned());
                }
            } else if let Some((name, address)) = text.strip_prefix(".. _").and_then(target) {
                let more = lines.get(at + 1..).unwrap_or_default();
                let address = joined(&address, more, indent(line));
                if waiting.len() < MOST {
                    waiting.push(name);
                }
                // A target without an address has the address of the next target.
                if !address.is_empty() {
                    waiting.drain(..).for_each(|name| names.add(&name, address.clone()));
                }
                continue;
            } else if let Some((name, made)) =
                text.strip_prefix(".. |").and_then(|rest| rest.split_once("| "))
            {
                names.substitute(name, made, lines.get(at + 1..).unwrap_or_default(), indent(line));
            }
            if !text.is_empty() {
                waiting.clear();
            }
        }
        names
    }

    /// Adds a target, unless the name has one.
    pub(crate) fn add(&mut self, name: &str, address: String) {
        if self.targets.len() < MOST && address.len() <= LONGEST {
            self.targets.entry(normal(name)).or_insert(address);
        }
    }

    fn substitute(&mut self, name: &str, made: &str, more: &[&str], within: usize) {
        let Some((directive, argument)) = made.split_once("::") else { return };
        let options =
            || more.iter().take_while(|line| indent(line) > within && line.trim_start().starts_with(':'));
        let option = |name: &str| {
            let value = options().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'));
            value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let substitution = match directive.trim() {
            "image" => Substitution {
                text: option(":alt").unwrap_or_else(|| named(argument.trim())),
                target: option(":target"),
            },
            "replace" => Substitution { text: joined_words(argument, more, within), target: None },
            "unicode" | "date" | "version" => Substitution { text: argument.trim().to_owned(), target: None },
            _ => return,
        };
        if self.substitutions.len() < MOST && substitution.text.len() <= LONGEST {
            self.substitutions.entry(normal(name)).or_insert(substitution);
        }
    }

    /// Resolves a name to its address.
    pub(crate) fn target(&self, name: &str) -> Option<&str> {
        let mut name = normal(name);
        for _ in 0..HOPS {
            let address = self.targets.get(&name)?;
            match address.strip_suffix('_') {
                // A final underscore marks the name of another target. But an address with a colon
                // is a real address, which may end in an underscore too.
                Some(other) if !address.contains(':') => name = normal(other.trim_matches('`')),
                _ => return Some(address),
            }
        }
        None
    }

    /// The address of the next anonymous reference.
    pub(crate) fn next_anonymous(&mut self) -> Option<String> {
        self.anonymous.pop_front()
    }

    /// Finds a substitution by its name.
    pub(crate) fn substitution(&self, name: &str) -> Option<&Substitution> {
        self.substitutions.get(&normal(name))
    }
}

/// The last segment of an image's address, for an image without a description.
pub(crate) fn named(address: &str) -> String {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path).to_owned()
}

/// Parses name and address after `.. _`.
fn target(rest: &str) -> Option<(String, String)> {
    let (name, address) = match rest.strip_prefix('`') {
        Some(quoted) => quoted.split_once("`:")?,
        None => rest.split_once(": ").or_else(|| Some((rest.strip_suffix(':')?, "")))?,
    };
    Some((name.replace('\\', ""), address.trim().to_owned()))
}

/// Joins an address with its continuation lines.
fn joined(address: &str, more: &[&str], within: usize) -> String {
    let below = more.iter().take_while(|line| indent(line) > within && !line.is_empty()).take(8);
    below.fold(address.to_owned(), |address, line| address + line.trim())
}

fn joined_words(words: &str, more: &[&str], within: usize) -> String {
    let below = more.iter().take_while(|line| indent(line) > within && !line.is_empty()).take(8);
    below.fold(words.trim().to_owned(), |words, line| words + " " + line.trim())
}

/// Normalizes a name for comparison: letter case and spacing do not matter.
fn normal(name: &str) -> String {
    let words: Vec<String> = name.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}
