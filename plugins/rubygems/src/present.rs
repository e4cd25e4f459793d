//! Presentation of a version to people: its description and its dependencies.

use crate::records::{self, GemRecord, text_of};
use crate::{RubyGems, delete, name};
use packhouse_sdk::{Context, Dependency, Failure, Present, Presentation, Readme, VersionId};

impl Present for RubyGems {
    fn present_version(cx: &Context, id: &VersionId) -> Result<Presentation, Failure> {
        let repository = cx.target()?;
        let missing = || delete::missing(&id.name, &id.version);
        if !name::is_name(&id.name) || name::parts(&id.version).is_none() {
            return Err(missing());
        }
        if repository.is_proxy() {
            // A proxy stores only the index line of a version, which contains no description.
            return Ok(Presentation::default());
        }
        let record = repository.get_json::<GemRecord>(&records::version(&id.name, &id.version))?;
        let spec = record.ok_or_else(missing)?.value.spec;
        let readme = (!spec.description.is_empty()).then(|| Readme::plain(&spec.description));
        let dependencies = spec.dependencies.iter().map(|one| {
            let requirements = one.requirements.iter().map(text_of).collect::<Vec<_>>().join(", ");
            Dependency::new(&one.name, requirements, if one.development { "development" } else { "" })
        });
        Ok(Presentation { readme, dependencies: dependencies.collect(), ..Presentation::default() })
    }
}
