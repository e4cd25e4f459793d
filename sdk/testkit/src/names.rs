//! Rules of the host that decide which packages a plugin must not request from an upstream.

use crate::state::{RepositoryState, State};
use packhouse_sdk::{Action, Failure, Intent};
use serde_json::Value;

impl State {
    /// Returns the members of a group; a nested group is replaced by its own members.
    pub(crate) fn members(&self, group: &str) -> Vec<String> {
        let members = self.repositories.get(group).map(|group| group.members.as_slice()).unwrap_or_default();
        let members = members.iter().flat_map(|name| match self.repositories.get(name) {
            Some(inner) if inner.kind == "group" => inner.members.clone(),
            _ => vec![name.clone()],
        });
        members.collect()
    }

    /// Returns the members of a group that a call gets: the members that the caller may read and
    /// that may serve the request.
    pub(crate) fn serving(&self, group: &str, intent: &Intent) -> Vec<String> {
        let members = self.members(group);
        let kind = |name: &String| self.repositories.get(name).map_or("", |state| state.kind.as_str());
        let hidden = |name: &String| self.repositories.get(name).is_some_and(|state| state.unreadable);
        let proxies = if intent.packages.is_empty() {
            intent.many_packages || !members.iter().any(|name| kind(name) == "hosted" && hidden(name))
        } else {
            self.withheld(group, &intent.packages).is_empty()
        };
        members.into_iter().filter(|name| !hidden(name) && (proxies || kind(name) != "proxy")).collect()
    }

    /// Refuses requests that the host refuses before it calls the format: reading a group without a
    /// readable member, and names that the proxy claims itself.
    pub(crate) fn refuse(&self, repository: &str, intent: &Intent) -> Result<(), Failure> {
        let Some(state) = self.repositories.get(repository) else { return Ok(()) };
        let hidden = |name: &String| self.repositories.get(name).is_some_and(|state| state.unreadable);
        match state.kind.as_str() {
            "group" if intent.action == Action::Read && self.members(repository).iter().all(hidden) => {
                Err(Failure::not_found("This group has no member that you may read"))
            }
            "proxy" if intent.packages.iter().any(|name| state.claims(name)) => {
                Err(Failure::not_found("This name is claimed for packages of your own"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the packages among these that are withheld from upstreams in a call with this
    /// target.
    pub(crate) fn withheld(&self, target: &str, names: &[String]) -> Vec<String> {
        let kind = self.repositories.get(target).map_or("", |state| state.kind.as_str());
        let mut all = vec![target.to_owned()];
        match kind {
            "group" => all.extend(self.members(target)),
            "proxy" => {
                for group in self.repositories.keys() {
                    let members = self.members(group);
                    if members.iter().any(|name| name == target) {
                        all.push(group.clone());
                        all.extend(members);
                    }
                }
            }
            _ => return Vec::new(),
        }
        let of = |name: &String| {
            let mut states = all.iter().filter_map(|repository| self.repositories.get(repository));
            states.any(|state| state.claims(name) || state.has(name))
        };
        names.iter().filter(|name| of(name)).cloned().collect()
    }
}

impl RepositoryState {
    fn claims(&self, name: &str) -> bool {
        let settings: Value = serde_json::from_str(&self.settings).unwrap_or_default();
        let patterns = settings.get("claimed_names").and_then(Value::as_array).into_iter().flatten();
        let patterns: Vec<&str> = patterns.filter_map(Value::as_str).collect();
        self.folding.covers(&patterns, name)
    }

    /// True if the repository is hosted and holds this package.
    fn has(&self, name: &str) -> bool {
        let has_record = |prefix: &String| {
            let prefix = prefix.replace("{name}", name);
            self.records.range(prefix.clone()..).next().is_some_and(|(key, _)| key.starts_with(&prefix))
        };
        let lists_version = || self.listed.keys().any(|(package, _)| package == name);
        self.kind == "hosted" && (lists_version() || self.held_by.iter().any(has_record))
    }
}
