//! Which packages a registry has: no two registries tell it the same way.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::fault::Fault;
use crate::place::Place;

/// Results of one search.
const PAGE: usize = 250;
/// Packages that are asked for by searching.
const MOST: usize = 1_000_000;

/// The names of all packages.
pub(super) async fn all(place: &Place) -> Result<Vec<String>, Fault> {
    let names = match place {
        Place::Folder(_) => listed(place, "packages.json").await?,
        Place::Server(_) => match listed(place, "-/verdaccio/data/packages").await {
            Ok(names) if !names.is_empty() => names,
            Ok(_) | Err(Fault::Missing(_) | Fault::Refused(_)) => match found(place).await {
                Ok(names) => names,
                Err(Fault::Missing(_) | Fault::Refused(_)) => {
                    listed(place, "-/all").await.map_err(|_| nameless())?
                }
                Err(fault) => return Err(fault),
            },
            Err(fault) => return Err(fault),
        },
    };
    Ok(names.into_iter().collect())
}

fn nameless() -> Fault {
    Fault::Refused(
        "the registry does not tell which packages it has; name them with --package or --packages-file"
            .to_owned(),
    )
}

/// An array of names or of objects with one, or an object by names.
async fn listed(place: &Place, path: &str) -> Result<BTreeSet<String>, Fault> {
    let read = place.read(path, "application/json").await?;
    let json: Value = serde_json::from_str(&read.text)
        .map_err(|error| Fault::Refused(format!("the list of packages is no JSON: {error}")))?;
    Ok(match &json {
        Value::Array(all) => {
            let name = |one: &Value| Some(one.as_str().or_else(|| one.get("name")?.as_str())?.to_owned());
            all.iter().filter_map(name).collect()
        }
        Value::Object(all) => all.keys().filter(|name| !name.starts_with('_')).cloned().collect(),
        _ => BTreeSet::new(),
    })
}

async fn found(place: &Place) -> Result<BTreeSet<String>, Fault> {
    let mut names = BTreeSet::new();
    for from in (0..MOST).step_by(PAGE) {
        let read =
            place.read(&format!("-/v1/search?text=&size={PAGE}&from={from}"), "application/json").await?;
        let json: Value = serde_json::from_str(&read.text)
            .map_err(|error| Fault::Refused(format!("what was found is no JSON: {error}")))?;
        let objects = json.get("objects").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let before = names.len();
        names.extend(
            objects.iter().filter_map(|one| Some(one.get("package")?.get("name")?.as_str()?.to_owned())),
        );
        // One that always answers the same has told all it tells.
        if objects.len() < PAGE || names.len() == before {
            break;
        }
    }
    if names.is_empty() { Err(nameless()) } else { Ok(names) }
}
