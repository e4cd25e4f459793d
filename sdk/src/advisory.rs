//! What is known to be wrong with a package. docs/PLUGINS.md lists the members.

use packhouse_names::AffectedVersions;
use serde::Deserialize;

/// An advisory about a package, from those that the operator brought in.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Advisory {
    /// As `GHSA-…`.
    pub id: String,
    /// Other identifiers of the same.
    pub aliases: Vec<String>,
    /// One line.
    pub summary: String,
    /// `unknown`, `low`, `moderate`, `high` or `critical`.
    pub severity: String,
    /// Whether the package does harm by itself.
    pub malware: bool,
    /// Where it is described; empty: nowhere.
    pub url: String,
    /// A vector of CVSS with its score.
    pub cvss: Option<Cvss>,
    /// As `CWE-79`.
    pub cwes: Vec<String>,
    /// The time when it became known, in ms since 1970.
    pub published: Option<u64>,
    /// Which versions of the package it is about.
    pub affected: AffectedVersions,
}

/// A vector of CVSS with its score.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Cvss {
    /// 0 to 10; 0 where that is not known.
    pub score: f64,
    /// As `CVSS:3.1/…`.
    #[serde(rename = "vectorString")]
    pub vector: String,
}
