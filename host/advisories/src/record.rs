//! Parses OSV records. The parser ignores unknown fields, but the stored text contains them.

use jiff::Timestamp;
use packhouse_names::{AffectedRange, AffectedVersions, Folding, RangeEvent};
use packhouse_store::AdvisoryRow;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::severity::{Severity, base_score};

/// Maximum size of a record in bytes.
pub const MAX_RECORD_BYTES: usize = 4 << 20;
/// Maximum sizes in bytes: of an identifier, and of a package's name.
const MAX_ID_BYTES: usize = 200;
const MAX_NAME_BYTES: usize = 1_024;
/// Limits for one record: the number of packages, and the number of events and listed versions
/// together.
const MAX_AFFECTED: usize = 2_000;
const MAX_NAMED: usize = 200_000;
/// Maximum size of a summary in lists, in bytes. Longer summaries are truncated.
const MAX_SUMMARY_BYTES: usize = 300;
/// Prefix of an identifier of malware.
const MALWARE: &str = "MAL-";

/// Error in an OSV record.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RecordError {
    /// The text is not a JSON object of the required form. The field contains the reason.
    #[error("it is not an OSV record: {0}")]
    Form(String),
    /// The record exceeds a limit. The field contains the number and the unit, such as "5000
    /// bytes".
    #[error("it has {0}, which is too much")]
    TooMuch(String),
}

/// An advisory about one package.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Advisory {
    /// The identifier, such as `GHSA-…`.
    pub id: String,
    /// The modification time that the record states, as text.
    #[serde(skip)]
    pub modified: String,
    /// Other identifiers of the same advisory.
    pub aliases: Vec<String>,
    /// A summary in one line.
    pub summary: String,
    pub severity: Severity,
    /// True if the package is itself malicious.
    pub malware: bool,
    /// Web page about the advisory.
    pub url: String,
    /// CVSS vector and score, if the record contains a vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cvss: Option<Cvss>,
    /// Kinds of weakness, such as `CWE-79`.
    pub cwes: Vec<String>,
    /// Time of publication in ms since 1970. If the record does not state it, the time of the last
    /// change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<i64>,
    /// The affected versions of the package.
    pub affected: AffectedVersions,
}

/// A CVSS vector with its base score.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cvss {
    /// Base score from 0 to 10. 0 if the vector is not of CVSS 3.
    pub score: f64,
    /// The vector, unchanged.
    #[serde(rename = "vectorString")]
    pub vector: String,
}

/// The parts of an OSV record that the server uses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct OsvRecord {
    #[serde(deserialize_with = "some")]
    id: String,
    #[serde(deserialize_with = "some")]
    modified: String,
    published: Option<String>,
    withdrawn: Option<String>,
    #[serde(deserialize_with = "some")]
    aliases: Vec<String>,
    #[serde(deserialize_with = "some")]
    summary: String,
    #[serde(deserialize_with = "some")]
    details: String,
    #[serde(deserialize_with = "some")]
    severity: Vec<OsvSeverity>,
    #[serde(deserialize_with = "some")]
    affected: Vec<OsvAffected>,
    #[serde(deserialize_with = "some")]
    references: Vec<OsvReference>,
    database_specific: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct OsvSeverity {
    #[serde(deserialize_with = "some")]
    score: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct OsvAffected {
    package: Option<OsvPackage>,
    #[serde(deserialize_with = "some")]
    ranges: Vec<OsvRange>,
    #[serde(deserialize_with = "some")]
    versions: Vec<String>,
    #[serde(deserialize_with = "some")]
    severity: Vec<OsvSeverity>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct OsvRange {
    #[serde(rename = "type", deserialize_with = "some")]
    kind: String,
    #[serde(deserialize_with = "some")]
    events: Vec<RangeEvent>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct OsvPackage {
    #[serde(deserialize_with = "some")]
    ecosystem: String,
    #[serde(deserialize_with = "some")]
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct OsvReference {
    #[serde(rename = "type", deserialize_with = "some")]
    kind: String,
    #[serde(deserialize_with = "some")]
    url: String,
}

/// Deserializes null as a missing field, because some databases write null.
fn some<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(read: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(read).map(Option::unwrap_or_default)
}

impl OsvRecord {
    /// Parses a record of at most [`MAX_RECORD_BYTES`].
    pub fn parse(text: &str) -> Result<OsvRecord, RecordError> {
        if text.len() > MAX_RECORD_BYTES {
            return Err(RecordError::TooMuch(format!("{} bytes", text.len())));
        }
        let record: OsvRecord =
            serde_json::from_str(text).map_err(|error| RecordError::Form(error.to_string()))?;
        record.checked()
    }

    fn checked(self) -> Result<OsvRecord, RecordError> {
        let plain = |byte: u8| byte.is_ascii_graphic();
        if self.id.is_empty() || self.id.len() > MAX_ID_BYTES || !self.id.bytes().all(plain) {
            return Err(RecordError::Form("its `id` is not valid".to_owned()));
        }
        if ms(&self.modified).is_none() {
            return Err(RecordError::Form("its `modified` is not a time".to_owned()));
        }
        let named = |affected: &OsvAffected| {
            affected.versions.len() + affected.ranges.iter().map(|range| range.events.len()).sum::<usize>()
        };
        if self.affected.len() > MAX_AFFECTED {
            return Err(RecordError::TooMuch(format!("{} packages", self.affected.len())));
        }
        match self.affected.iter().map(named).sum::<usize>() {
            many if many > MAX_NAMED => Err(RecordError::TooMuch(format!("{many} versions"))),
            _ => Ok(self),
        }
    }

    /// Formats a time in ms since 1970 as its day in UTC, such as `2026-11-21`.
    pub fn day(at: i64) -> String {
        let date = Timestamp::from_millisecond(at).map(|at| at.strftime("%Y-%m-%d").to_string());
        date.unwrap_or_default()
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the modification time that the record states, as text.
    pub fn modified(&self) -> &str {
        &self.modified
    }

    /// Reports whether the record is about malicious packages. The identifier, an alias or a field
    /// of the record's database states this.
    pub fn is_malware(&self) -> bool {
        let named = |id: &str| id.starts_with(MALWARE);
        let field = |name: &str| self.database_specific.get(name);
        named(&self.id)
            || self.aliases.iter().any(|alias| named(alias))
            || field("malicious-packages-origins").is_some()
            || field("type").and_then(Value::as_str).is_some_and(|kind| kind.eq_ignore_ascii_case("malware"))
    }

    /// Returns the severity that the record's database states in words, or else the severity of the
    /// highest score. Malware is always critical.
    pub fn severity(&self) -> Severity {
        if self.is_malware() {
            return Severity::Critical;
        }
        let word = self.database_specific.get("severity").and_then(Value::as_str).unwrap_or_default();
        let scores = self.severity.iter().chain(self.affected.iter().flat_map(|it| &it.severity));
        let of_scores = scores.filter_map(|entry| base_score(&entry.score)).map(Severity::of_score).max();
        match Severity::of_word(word) {
            Severity::Unknown => of_scores.unwrap_or_default(),
            stated => stated,
        }
    }

    /// Returns the affected packages without duplicates, as ecosystem and name. Leaves out names
    /// that the store cannot look up.
    pub fn packages(&self) -> Vec<(String, String)> {
        let fits = |text: &str| !text.is_empty() && text.len() <= MAX_NAME_BYTES && !text.contains('\0');
        let named = self.affected.iter().filter_map(|affected| affected.package.as_ref());
        let named = named.filter(|package| fits(&package.ecosystem) && fits(&package.name));
        let mut packages: Vec<(String, String)> =
            named.map(|package| (package.ecosystem.clone(), package.name.clone())).collect();
        packages.sort();
        packages.dedup();
        packages
    }

    /// Returns the advisory about one package, or `None` if the record does not mention the
    /// package. `folding` normalizes both names before the comparison.
    pub fn about(&self, ecosystem: &str, package: &str, folding: Folding) -> Option<Advisory> {
        let package = folding.fold(package);
        let is_it = |named: &OsvPackage| named.ecosystem == ecosystem && folding.fold(&named.name) == package;
        let mut about = self.affected.iter().filter(|it| it.package.as_ref().is_some_and(is_it)).peekable();
        about.peek()?;
        let mut affected = AffectedVersions::default();
        for entry in about {
            affected.versions.extend(entry.versions.iter().cloned());
            affected.ranges.extend(
                entry
                    .ranges
                    .iter()
                    .map(|range| AffectedRange { kind: range.kind.clone(), events: range.events.clone() }),
            );
        }
        Some(Advisory {
            id: self.id.clone(),
            modified: self.modified.clone(),
            aliases: self.aliases.clone(),
            summary: self.summary(),
            severity: self.severity(),
            malware: self.is_malware(),
            url: self.url(),
            cvss: self.cvss(),
            cwes: self.cwes(),
            published: self
                .published
                .as_deref()
                .and_then(ms)
                .or_else(|| ms(&self.modified))
                .filter(|ms| *ms >= 0),
            affected,
        })
    }

    /// Returns one line: the first line of the summary, or of the details if there is no summary.
    pub fn summary(&self) -> String {
        let text = if self.summary.trim().is_empty() { &self.details } else { &self.summary };
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let end = line.floor_char_boundary(MAX_SUMMARY_BYTES);
        line.get(..end).unwrap_or_default().replace('\0', "")
    }

    /// Returns a web page about the record: the reference of type `ADVISORY`, or else the first
    /// reference.
    fn url(&self) -> String {
        let web = |url: &str| url.starts_with("https://") || url.starts_with("http://");
        let pages = || self.references.iter().filter(|reference| web(&reference.url));
        let page = pages().find(|page| page.kind == "ADVISORY").or_else(|| pages().next());
        page.map(|page| page.url.clone()).unwrap_or_default()
    }

    fn cvss(&self) -> Option<Cvss> {
        let scores = self.severity.iter().chain(self.affected.iter().flat_map(|it| &it.severity));
        let mut vectors = scores.map(|entry| entry.score.as_str()).filter(|score| score.starts_with("CVSS:"));
        let first = vectors.clone().find(|vector| base_score(vector).is_some()).or_else(|| vectors.next())?;
        Some(Cvss { score: base_score(first).unwrap_or_default(), vector: first.to_owned() })
    }

    fn cwes(&self) -> Vec<String> {
        let ids = self.database_specific.get("cwe_ids").and_then(Value::as_array).into_iter().flatten();
        ids.filter_map(Value::as_str).map(str::to_owned).take(50).collect()
    }

    /// Returns the row for the store. `text` is the text from which the record was parsed.
    pub fn row(&self, text: &str) -> AdvisoryRow {
        AdvisoryRow {
            id: self.id.clone(),
            modified: ms(&self.modified).unwrap_or_default(),
            withdrawn: self.withdrawn.as_deref().and_then(ms),
            severity: self.severity().rank(),
            malware: self.is_malware(),
            summary: self.summary(),
            record: text.to_owned(),
            packages: self.packages(),
        }
    }
}

/// Formats a time in ms since 1970 by RFC 3339. Returns an empty text if the time is out of range.
pub fn time(at: i64) -> String {
    Timestamp::from_millisecond(at).map(|at| at.to_string()).unwrap_or_default()
}

/// Parses an RFC 3339 time into ms since 1970.
fn ms(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RECORD: &str = r#"{
        "schema_version": "1.6.0", "id": "GHSA-aaaa-bbbb-cccc", "modified": "2026-02-01T10:00:00Z", "published": "2026-01-01T00:00:00Z",
        "aliases": ["CVE-2026-1"], "summary": "It leaks", "details": "A\nB",
        "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N"}],
        "affected": [
            {"package": {"ecosystem": "PyPI", "name": "Some.Thing", "purl": "pkg:pypi/some-thing"},
             "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.2"}]}], "versions": null},
            {"package": {"ecosystem": "PyPI", "name": "some-thing"}, "versions": ["2.0"]},
            {"package": {"ecosystem": "npm", "name": "other"}, "ranges": null}
        ],
        "references": [{"type": "WEB", "url": "https://a.example"}, {"type": "ADVISORY", "url": "https://b.example"}],
        "database_specific": {"severity": "LOW", "cwe_ids": ["CWE-200"]}
    }"#;

    #[test]
    fn a_record_gives_the_advisory_about_a_package() {
        let record = OsvRecord::parse(RECORD).unwrap();
        let advisory = record.about("PyPI", "some_thing", Folding::Pep503).unwrap();
        assert_eq!(advisory.published, Some(1_767_225_600_000));
        assert_eq!((advisory.severity, advisory.url.as_str()), (Severity::Low, "https://b.example"));
        assert_eq!(advisory.cvss.as_ref().unwrap().score, 7.5);
        assert_eq!((advisory.affected.ranges.len(), advisory.affected.versions.len()), (1, 1));
        assert_eq!(advisory.cwes, ["CWE-200"]);
        assert!(record.about("PyPI", "some_thing", Folding::None).is_none());
        assert!(record.about("npm", "some-thing", Folding::Pep503).is_none());
        let row = record.row(RECORD);
        assert_eq!((row.modified, row.severity, row.malware), (1_769_940_000_000, 1, false));
        assert_eq!(row.packages.len(), 3);
    }

    #[test]
    fn malware_is_recognized_by_its_id_or_its_database() {
        let of = |fields: &str| {
            let text = format!(r#"{{"modified": "2026-02-01T10:00:00Z", {fields}}}"#);
            OsvRecord::parse(&text).unwrap()
        };
        for malware in [
            r#""id": "MAL-2026-1""#,
            r#""id": "GHSA-x", "aliases": ["MAL-2026-1"]"#,
            r#""id": "X-1", "database_specific": {"malicious-packages-origins": []}"#,
            r#""id": "X-1", "database_specific": {"type": "malware"}"#,
        ] {
            let record = of(malware);
            assert!(record.is_malware() && record.severity() == Severity::Critical, "{malware}");
        }
        assert!(!of(r#""id": "GHSA-x", "database_specific": null"#).is_malware());
    }

    #[test]
    fn invalid_records_are_refused() {
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"id": "a b", "modified": "2026-02-01T10:00:00Z"}"#,
            r#"{"id": "a", "modified": "yesterday"}"#,
            r#"{"id": "a", "modified": "2026-02-01T10:00:00Z", "affected": {}}"#,
        ] {
            assert!(matches!(OsvRecord::parse(wrong), Err(RecordError::Form(_))), "{wrong}");
        }
        let large = " ".repeat(MAX_RECORD_BYTES + 1);
        assert!(matches!(OsvRecord::parse(&large), Err(RecordError::TooMuch(_))));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in any::<String>(), at in any::<prop::sample::Index>()) {
            let _ = OsvRecord::parse(&text);
            let cut = RECORD.floor_char_boundary(at.index(RECORD.len()));
            let _ = OsvRecord::parse(&format!("{}{text}{}", &RECORD[..cut], &RECORD[cut..]));
        }
    }
}
