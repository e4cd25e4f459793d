//! Documents in the format CycloneDX 1.6: <https://cyclonedx.org/docs/1.6/json/>.

use packhouse_advisories::purl::{self, PurlType};
use packhouse_advisories::time;
use packhouse_store::{RepositoryId, RepositoryRow, Version, VersionFile};
use serde_json::{Value, json};

use super::{FILES, Licence};

/// Start of the document, up to the first component.
pub(super) fn head(name: &str, now: i64) -> String {
    let tool = json!({"type": "application", "name": "packhouse", "version": env!("CARGO_PKG_VERSION")});
    let metadata = json!({
        "timestamp": time(now), "tools": {"components": [tool]},
        "component": {"type": "platform", "bom-ref": "packhouse", "name": name},
    });
    format!(
        "{{\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.6\",\"version\":1,\"metadata\":{metadata},\"components\":["
    )
}

pub(super) fn component(
    repository: &RepositoryRow,
    purl_type: Option<PurlType<'_>>,
    version: Version,
) -> Value {
    let Version { name, version, files, summary, properties, state, published } = version;
    let mut made = json!({
        "type": "library", "bom-ref": reference(repository.id, &name, &version), "name": name, "version": version,
        "properties": [
            {"name": "packhouse:repository", "value": repository.name},
            {"name": "packhouse:format", "value": repository.format},
        ],
    });
    let mut set = |member: &str, value: Value| {
        if let Some(made) = made.as_object_mut() {
            made.insert(member.to_owned(), value);
        }
    };
    if let Some(of) = purl_type {
        set("purl", json!(purl::write(of, &name, &version)));
    }
    if !summary.is_empty() {
        set("description", json!(summary));
    }
    let license = properties.iter().find(|(property, text)| property == "license" && !text.is_empty());
    if let Some((_, license)) = license {
        set(
            "licenses",
            match Licence::of(license) {
                Licence::Expression(expression) => json!([{"expression": expression}]),
                Licence::Text(text) => json!([{"license": {"name": text}}]),
            },
        );
    }
    if let [file] = files.as_slice() {
        set("hashes", json!([hash(file)].into_iter().flatten().collect::<Vec<_>>()));
    } else if !files.is_empty() {
        let files: Vec<Value> = files.iter().take(FILES).map(file).collect();
        set("components", json!(files));
    }
    let details = [
        ("state", state),
        ("published_at", published.and_then(|at| i64::try_from(at).ok()).map(time).unwrap_or_default()),
    ];
    if let Some(list) = made.get_mut("properties").and_then(Value::as_array_mut) {
        let details = details.into_iter().filter(|(_, value)| !value.is_empty());
        list.extend(
            details.map(|(name, value)| json!({"name": format!("packhouse:{name}"), "value": value})),
        );
    }
    made
}

/// Reference of a component within the document.
fn reference(repository: RepositoryId, name: &str, version: &str) -> String {
    format!("{repository}/{name}@{version}")
}

fn file(file: &VersionFile) -> Value {
    json!({"type": "file", "name": file.path, "hashes": hash(file).into_iter().collect::<Vec<_>>()})
}

fn hash(file: &VersionFile) -> Option<Value> {
    let text = file.digest.to_string();
    let (algorithm, content) = text.split_once(':')?;
    let algorithm = match algorithm {
        "sha256" => "SHA-256",
        "sha512" => "SHA-512",
        "sha1" => "SHA-1",
        "md5" => "MD5",
        _ => return None,
    };
    Some(json!({"alg": algorithm, "content": content}))
}
