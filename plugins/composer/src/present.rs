//! What people are shown of a version: the packages that it needs.

use crate::records::{self, Fetched, PackageRecord};
use crate::version::Version;
use crate::{Composer, delete};
use packhouse_sdk::{Context, Dependency, Failure, Present, Presentation, VersionId};
use serde_json::{Map, Value};

impl Present for Composer {
    fn present_version(cx: &Context, id: &VersionId) -> Result<Presentation, Failure> {
        let repository = cx.target()?;
        let missing = || delete::missing(&id.name, &id.version);
        let key = delete::key(&id.name, &id.version)?;
        let members = if repository.is_proxy() {
            let version = Version::parse(&id.version).ok_or_else(missing)?;
            let fetched = repository.get_json::<Fetched>(&records::fetched(&id.name, &version.key()))?;
            fetched.ok_or_else(missing)?.value.metadata
        } else {
            repository.get_json::<PackageRecord>(&key)?.ok_or_else(missing)?.value.members
        };
        Ok(Presentation { dependencies: dependencies(&members), ..Presentation::default() })
    }
}

fn dependencies(members: &Map<String, Value>) -> Vec<Dependency> {
    let mut found = Vec::new();
    for (member, group) in [("require", ""), ("require-dev", "dev"), ("suggest", "suggest")] {
        let links = members.get(member).and_then(Value::as_object).into_iter().flatten();
        found.extend(
            links.map(|(name, asked)| Dependency::new(name, asked.as_str().unwrap_or_default(), group)),
        );
    }
    found
}
