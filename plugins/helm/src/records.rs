//! The records of the format: their keys and their contents.
//!
//! | key | content |
//! | --- | --- |
//! | `c/<chart>/<version>` | a version: its metadata, file, signature and state |
//! | `f/<file>` | chart and version that own this file name, even after their deletion |
//! | `p/<chart>/<version>` | in a proxy: a version whose file was fetched |
//!
//! Names of charts contain no slash.

use crate::chart::Chart;
use crate::listed::ListedChart;
use crate::name;
use packhouse_sdk::{Digest, Error, Repository, Timestamp, Version};
use serde::{Deserialize, Serialize};

pub(crate) const CHARTS: &str = "c/";
pub(crate) const FETCHED: &str = "p/";

pub(crate) fn versions(chart: &str) -> String {
    format!("c/{chart}/")
}

pub(crate) fn version(chart: &str, version: &str) -> String {
    format!("c/{chart}/{version}")
}

pub(crate) fn file(file: &str) -> String {
    format!("f/{file}")
}

pub(crate) fn fetched(chart: &str, version: &str) -> String {
    format!("p/{chart}/{version}")
}

/// A version of a chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChartRecord {
    pub(crate) chart: Chart,
    pub(crate) sha256: Digest,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Time of the publish, in ms since 1970.
    pub(crate) time: u64,
    /// The signature, a `.prov` file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provenance: Option<Digest>,
    /// Reason of a deprecation through the management API, which may be empty. `None` if the
    /// management API did not deprecate the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deprecated: Option<String>,
}

impl ChartRecord {
    /// Returns the blobs that the record refers to.
    pub(crate) fn blobs(&self) -> Vec<Digest> {
        [self.sha256.clone()].into_iter().chain(self.provenance.clone()).collect()
    }

    /// Converts the record into an entry of the package list, without the file.
    pub(crate) fn listed_version(&self) -> Version {
        let mut listed = listed_version(&self.chart);
        if let Some(reason) = &self.deprecated {
            listed = listed.state("deprecated");
            if !reason.is_empty() {
                listed = listed.property("reason", reason);
            }
        }
        listed
    }

    /// Converts the record into an entry of the index.
    pub(crate) fn into_listed(self) -> ListedChart {
        let mut chart = self.chart;
        if self.deprecated.is_some() {
            chart.deprecated = Some(true);
        }
        ListedChart {
            chart,
            created: Timestamp::from_ms(self.time).to_rfc3339(),
            digest: Some(self.sha256.hex().to_owned()),
            url: String::new(),
        }
    }
}

/// Converts a chart's metadata into an entry of the package list, without the file.
pub(crate) fn listed_version(chart: &Chart) -> Version {
    let mut listed = Version::new(&chart.name, &chart.version).summary(summary(chart));
    for (name, value) in
        [("app_version", &chart.app_version), ("kube_version", &chart.kube_version), ("home", &chart.home)]
    {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            listed = listed.property(name, short(value));
        }
    }
    if let Some(words) = chart.keywords.as_ref().filter(|words| !words.is_empty()) {
        listed = listed.property("keywords", short(&words.join(" ")));
    }
    if chart.deprecated == Some(true) { listed.state("deprecated") } else { listed }
}

fn summary(chart: &Chart) -> String {
    let text = chart.description.as_deref().unwrap_or_default();
    short(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim())
}

fn short(text: &str) -> String {
    text.chars().filter(|symbol| !symbol.is_control()).take(400).collect()
}

/// The chart and version that own a file name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileOwner {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// A version whose file a proxy fetched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FetchedChart {
    pub(crate) listed: ListedChart,
    /// True if the upstream no longer lists the version.
    #[serde(default)]
    pub(crate) withdrawn: bool,
}

/// Finds the version that owns this file name. Returns `None` if it does not exist or was deleted.
pub(crate) fn by_file(repository: &Repository, file_name: &str) -> Result<Option<ChartRecord>, Error> {
    if name::splits(file_name).is_empty() {
        return Ok(None);
    }
    let Some(owner) = repository.get_json::<FileOwner>(&file(file_name))? else { return Ok(None) };
    let FileOwner { name, version: number } = owner.value;
    Ok(repository.get_json::<ChartRecord>(&version(&name, &number))?.map(|entry| entry.value))
}
