//! What people are shown of a version: its description, and the gems that it needs.

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
            // The line of the index is all that is kept of it.
            return Ok(Presentation::default());
        }
        let record = repository.get_json::<GemRecord>(&records::version(&id.name, &id.version))?;
        let spec = record.ok_or_else(missing)?.value.spec;
        let readme = (!spec.description.is_empty()).then(|| Readme::plain(&spec.description));
        let dependencies = spec.dependencies.iter().map(|one| {
            let asked = one.requirements.iter().map(text_of).collect::<Vec<_>>().join(", ");
            Dependency::new(&one.name, asked, if one.development { "development" } else { "" })
        });
        Ok(Presentation { readme, dependencies: dependencies.collect(), ..Presentation::default() })
    }
}
