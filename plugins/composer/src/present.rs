//! Presentation of a version to people: its dependencies.

use crate::delete::{key_of, missing};
use crate::records::{self, FetchedVersion};
use crate::{Composer, members};
use packhouse_sdk::{Context, Dependency, Failure, Present, Presentation, VersionId};
use serde_json::{Map, Value};

/// The members that list dependencies, and the group under which each is shown.
const GROUPS: [(&str, &str); 3] = [("require", ""), ("require-dev", "dev"), ("suggest", "suggest")];

impl Present for Composer {
    fn present_version(cx: &Context, id: &VersionId) -> Result<Presentation, Failure> {
        let (repository, key) = (cx.target()?, key_of(&id.name, &id.version)?);
        let missing = || missing(&id.name, &id.version);
        let dependencies = if repository.is_proxy() {
            let record = repository.get_json::<FetchedVersion>(&records::fetched(&id.name, &key))?;
            let all = members::of_raw(&record.ok_or_else(missing)?.value.metadata);
            dependencies(|member| members::object(&all, member))
        } else {
            let record = records::find(repository, &id.name, &key, &id.version)?;
            let all = record.ok_or_else(missing)?.value.members;
            dependencies(|member| all.get(member).and_then(Value::as_object).cloned())
        };
        Ok(Presentation { dependencies, ..Presentation::default() })
    }
}

fn dependencies(links: impl Fn(&str) -> Option<Map<String, Value>>) -> Vec<Dependency> {
    let mut found = Vec::new();
    for (member, group) in GROUPS {
        found.extend(links(member).into_iter().flatten().map(|(name, requirement)| {
            Dependency::new(name, requirement.as_str().unwrap_or_default(), group)
        }));
    }
    found
}
