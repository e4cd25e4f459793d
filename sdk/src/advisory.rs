//! Advisories about packages. docs/plugins/upstreams.md lists the members of their JSON objects.

use packhouse_names::AffectedVersions;
use serde::Deserialize;

/// Advisory about a package, imported by the operator.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Advisory {
    /// Identifier, for example `GHSA-…`.
    pub id: String,
    /// Other identifiers of the same advisory.
    pub aliases: Vec<String>,
    /// Summary in one line.
    pub summary: String,
    /// `unknown`, `low`, `moderate`, `high` or `critical`.
    pub severity: String,
    /// True if the package itself is malicious.
    pub malware: bool,
    /// Address of a page that describes the advisory; may be empty.
    pub url: String,
    /// CVSS vector and score.
    pub cvss: Option<Cvss>,
    /// CWE identifiers, for example `CWE-79`.
    pub cwes: Vec<String>,
    /// Publication time of the advisory, as Unix time in ms.
    pub published: Option<u64>,
    /// Affected versions of the package.
    pub affected: AffectedVersions,
}

/// CVSS vector and score.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Cvss {
    /// Score from 0 to 10; 0 if it is unknown.
    pub score: f64,
    /// Vector, for example `CVSS:3.1/…`.
    #[serde(rename = "vectorString")]
    pub vector: String,
}
