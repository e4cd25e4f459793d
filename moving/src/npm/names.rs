//! Lists the packages of a registry. Registries offer different ways to list them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::MoveError;
use crate::location::SourceLocation;

/// Number of results per search.
const PAGE: usize = 250;
/// Maximum number of packages that are listed by searching.
const MAX_PACKAGES: usize = 1_000_000;

/// The names of all packages.
pub(super) async fn all(location: &SourceLocation) -> Result<Vec<String>, MoveError> {
    let names = match location {
        SourceLocation::Folder(_) => listed(location, "packages.json").await?,
        SourceLocation::Server(_) => match listed(location, "-/verdaccio/data/packages").await {
            Ok(names) if !names.is_empty() => names,
            Ok(_) | Err(MoveError::Missing(_) | MoveError::Refused(_)) => match found(location).await {
                Ok(names) => names,
                Err(MoveError::Missing(_) | MoveError::Refused(_)) => {
                    listed(location, "-/all").await.map_err(|_| nameless())?
                }
                Err(fault) => return Err(fault),
            },
            Err(fault) => return Err(fault),
        },
    };
    Ok(names.into_iter().collect())
}

fn nameless() -> MoveError {
    MoveError::Refused(
        "the registry does not list its packages; name them with --package or --packages-file".to_owned(),
    )
}

/// Reads a list of packages: an array of names or of objects with names, or an object that is keyed
/// by name.
async fn listed(location: &SourceLocation, path: &str) -> Result<BTreeSet<String>, MoveError> {
    let read = location.read(path, "application/json").await?;
    let json: Value = serde_json::from_str(&read.text)
        .map_err(|error| MoveError::Refused(format!("the list of packages is not JSON: {error}")))?;
    Ok(match &json {
        Value::Array(all) => {
            let name = |one: &Value| Some(one.as_str().or_else(|| one.get("name")?.as_str())?.to_owned());
            all.iter().filter_map(name).collect()
        }
        Value::Object(all) => all.keys().filter(|name| !name.starts_with('_')).cloned().collect(),
        _ => BTreeSet::new(),
    })
}

async fn found(location: &SourceLocation) -> Result<BTreeSet<String>, MoveError> {
    let mut names = BTreeSet::new();
    for from in (0..MAX_PACKAGES).step_by(PAGE) {
        let read =
            location.read(&format!("-/v1/search?text=&size={PAGE}&from={from}"), "application/json").await?;
        let json: Value = serde_json::from_str(&read.text)
            .map_err(|error| MoveError::Refused(format!("the search result is not JSON: {error}")))?;
        let objects = json.get("objects").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let before = names.len();
        names.extend(
            objects.iter().filter_map(|one| Some(one.get("package")?.get("name")?.as_str()?.to_owned())),
        );
        // Some registries ignore `from` and always return the same results.
        if objects.len() < PAGE || names.len() == before {
            break;
        }
    }
    if names.is_empty() { Err(nameless()) } else { Ok(names) }
}
