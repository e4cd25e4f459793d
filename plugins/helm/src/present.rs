//! Presentation of a version to people: its README.md and its dependencies.

use crate::records::{self, ChartRecord, FetchedChart};
use crate::{Helm, api, archive, name};
use packhouse_sdk::{Context, Dependency, Failure, Present, Presentation, README_BYTES, Readme, VersionId};

impl Present for Helm {
    fn present_version(cx: &Context, id: &VersionId) -> Result<Presentation, Failure> {
        let repository = cx.target()?;
        let missing = || api::missing(&id.name, &id.version);
        if !name::is_name(&id.name) || name::version(&id.version).is_none() {
            return Err(missing());
        }
        if repository.is_proxy() {
            let fetched = repository.get_json::<FetchedChart>(&records::fetched(&id.name, &id.version))?;
            let chart = fetched.ok_or_else(missing)?.value.listed.chart;
            return Ok(Presentation { dependencies: dependencies(&chart), ..Presentation::default() });
        }
        let record = repository.get_json::<ChartRecord>(&records::version(&id.name, &id.version))?;
        let record = record.ok_or_else(missing)?.value;
        let file = repository.recorded_blob(&record.sha256)?;
        // A README that is too large or exists twice is left out.
        let readme = archive::file(&file, "README.md", README_BYTES as u64).ok().flatten();
        let readme = readme.map(|bytes| Readme::markdown(String::from_utf8_lossy(&bytes)));
        Ok(Presentation { readme, dependencies: dependencies(&record.chart), ..Presentation::default() })
    }
}

fn dependencies(chart: &crate::chart::Chart) -> Vec<Dependency> {
    let dependencies = chart.dependencies.iter().flatten();
    dependencies
        .map(|one| {
            let group = one.condition.as_deref().unwrap_or_default();
            Dependency::new(&one.name, one.version.as_deref().unwrap_or_default(), group)
        })
        .collect()
}
