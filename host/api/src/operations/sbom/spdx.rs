//! SPDX 2.3 as JSON: <https://spdx.github.io/spdx-spec/v2.3/>. A version is a package. If it has
//! several files, each file is a package too, because the digests belong to the published files.

use packhouse_advisories::purl::{self, PurlType};
use packhouse_advisories::time;
use packhouse_store::{RepositoryRow, Version, VersionFile};
use serde_json::{Map, Value, json};

use super::{FILES, Licence};

/// Separates the packages from their relations.
pub(super) const BETWEEN: &[u8] = b"],\"relationships\":[";
const UNKNOWN: &str = "NOASSERTION";

/// Start of the document, up to the first package. The document's namespace is below the API's
/// address.
pub(super) fn head(name: &str, api_url: &str, now: i64) -> String {
    let made = json!({
        "created": second(now), "creators": [concat!("Tool: packhouse-", env!("CARGO_PKG_VERSION"))],
    });
    let number: u64 = rand::random();
    let space = json!(format!("{}/v1/sbom/{now}-{number:016x}", api_url.trim_end_matches('/')));
    let name = json!(name);
    format!(
        "{{\"spdxVersion\":\"SPDX-2.3\",\"dataLicense\":\"CC0-1.0\",\"SPDXID\":\"SPDXRef-DOCUMENT\",\"name\":{name},\
         \"documentNamespace\":{space},\"creationInfo\":{made},\"packages\":["
    )
}

/// Writes a version, and its files if it has several. Returns the number of files.
pub(super) fn packages(
    text: &mut String,
    number: usize,
    repository: &RepositoryRow,
    purl_type: Option<PurlType<'_>>,
    version: &Version,
) -> u16 {
    let mut made = package(&reference(number), &version.name);
    made.insert("versionInfo".to_owned(), json!(version.version));
    made.insert(
        "comment".to_owned(),
        json!(format!("{}, in the repository {}", state(version), repository.name)),
    );
    if !version.summary.is_empty() {
        made.insert("summary".to_owned(), json!(version.summary));
    }
    if let Some(of) = purl_type {
        let purl = purl::write(of, &version.name, &version.version);
        let reference = json!({
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl,
        });
        made.insert("externalRefs".to_owned(), json!([reference]));
    }
    if let Some(at) = version.published.and_then(|at| i64::try_from(at).ok()) {
        made.insert("releaseDate".to_owned(), json!(second(at)));
    }
    add_licence(&mut made, version);
    if let [file] = version.files.as_slice() {
        add_file(&mut made, file);
    }
    text.push_str(&Value::Object(made).to_string());
    if version.files.len() < 2 {
        return 0;
    }
    let mut apart = 0;
    for file in version.files.iter().take(FILES) {
        let mut made = package(&reference_of_file(number, apart), &file.path);
        add_file(&mut made, file);
        text.push(',');
        text.push_str(&Value::Object(made).to_string());
        apart += 1;
    }
    apart
}

/// Relations: the document describes these versions, and they contain their files. `from` is the
/// index of the first one. A comma precedes each relation except the document's first.
pub(super) fn relations(from: usize, written: &[u16]) -> String {
    let mut text = String::new();
    let mut add = |one: &str, kind: &str, other: &str| {
        if from > 0 || !text.is_empty() {
            text.push(',');
        }
        let relation = json!({"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other});
        text.push_str(&relation.to_string());
    };
    for (number, files) in (from..).zip(written) {
        add("SPDXRef-DOCUMENT", "DESCRIBES", &reference(number));
        for file in 0..*files {
            add(&reference(number), "CONTAINS", &reference_of_file(number, file));
        }
    }
    text
}

/// SPDX time without fractions of a second. `at` is Unix time in ms.
fn second(at: i64) -> String {
    time(at.saturating_sub(at.rem_euclid(1_000)))
}

fn reference(number: usize) -> String {
    format!("SPDXRef-{number}")
}

fn reference_of_file(number: usize, file: u16) -> String {
    format!("SPDXRef-{number}-{file}")
}

fn state(version: &Version) -> &str {
    if version.state.is_empty() { "published" } else { &version.state }
}

/// Fields that every package must have.
fn package(reference: &str, name: &str) -> Map<String, Value> {
    let made = [
        ("SPDXID", json!(reference)),
        ("name", json!(name)),
        ("downloadLocation", json!(UNKNOWN)),
        ("filesAnalyzed", json!(false)),
        ("licenseConcluded", json!(UNKNOWN)),
        ("licenseDeclared", json!(UNKNOWN)),
        ("copyrightText", json!(UNKNOWN)),
    ];
    made.into_iter().map(|(member, value)| (member.to_owned(), value)).collect()
}

fn add_licence(made: &mut Map<String, Value>, version: &Version) {
    let stated = version.properties.iter().find(|(name, text)| name == "license" && !text.is_empty());
    let Some((_, stated)) = stated else { return };
    match Licence::of(stated) {
        // The document would have to contain the text of a license that is not on the SPDX list.
        Licence::Expression(expression) if !expression.contains("Ref-") => {
            made.insert("licenseDeclared".to_owned(), json!(expression))
        }
        Licence::Expression(text) | Licence::Text(text) => {
            made.insert("licenseComments".to_owned(), json!(text))
        }
    };
}

fn add_file(made: &mut Map<String, Value>, file: &VersionFile) {
    made.insert("packageFileName".to_owned(), json!(file.path));
    let text = file.digest.to_string();
    let Some((algorithm, value)) = text.split_once(':') else { return };
    let checksum = json!({"algorithm": algorithm.to_ascii_uppercase(), "checksumValue": value});
    made.insert("checksums".to_owned(), json!([checksum]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_seconds_and_unlisted_licenses_are_texts() {
        assert_eq!(
            (second(1_500), second(-1)),
            ("1970-01-01T00:00:01Z".to_owned(), "1969-12-31T23:59:59Z".to_owned())
        );
        let declared = |license: &str| {
            let properties = vec![("license".to_owned(), license.to_owned())];
            let mut made = package("a", "a");
            add_licence(&mut made, &Version { properties, ..Version::default() });
            (made["licenseDeclared"].clone(), made.get("licenseComments").cloned())
        };
        assert_eq!(declared("MIT OR Apache-2.0"), (json!("MIT OR Apache-2.0"), None));
        for text in ["LicenseRef-ours", "see LICENSE"] {
            assert_eq!(declared(text), (json!(UNKNOWN), Some(json!(text))));
        }
    }

    #[test]
    fn relations_form_one_list_however_they_are_split() {
        let written = [0, 2, 0];
        let whole = relations(0, &written);
        let cut = [relations(0, &written[..1]), relations(1, &written[1..])].concat();
        assert_eq!(whole, cut);
        let list: Vec<Value> = serde_json::from_str(&format!("[{whole}]")).unwrap();
        let related: Vec<&str> = list.iter().filter_map(|one| one["relatedSpdxElement"].as_str()).collect();
        assert_eq!(related, ["SPDXRef-0", "SPDXRef-1", "SPDXRef-1-0", "SPDXRef-1-1", "SPDXRef-2"]);
    }
}
