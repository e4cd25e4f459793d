//! The metadata of a chart, from a Chart.yaml or from an entry of an index.

use crate::name;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The largest Chart.yaml, in bytes.
pub(crate) const CHART_YAML: u64 = 256 << 10;

/// The metadata of a chart, with all fields that Helm knows. The plugin drops other fields, because
/// Helm refuses an index that contains an unknown field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Chart {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) app_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) condition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dependencies: Option<Vec<ChartDependency>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deprecated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) home: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) icon: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keywords: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kube_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) maintainers: Option<Vec<Maintainer>>,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sources: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tags: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    pub(crate) version: String,
}

/// A maintainer of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Maintainer {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// A chart that another chart depends on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct ChartDependency {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repository: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) condition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    import_values: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias: Option<String>,
}

impl Chart {
    /// Reads a Chart.yaml.
    ///
    /// # Errors
    /// Returns a sentence for the author of the chart.
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_events: 100_000, max_depth: 64, max_documents: 1 },
        };
        let chart: Self = serde_saphyr::from_slice_with_options(text, options)
            .map_err(|error| format!("Its Chart.yaml cannot be read: {}", first_line(&error.to_string())))?;
        if !name::is_name(&chart.name) {
            return Err(format!("The name {:?} in its Chart.yaml is not valid", chart.name));
        }
        if name::version(&chart.version).is_none() {
            return Err(format!(
                "The version {:?} in its Chart.yaml is not a semantic version",
                chart.version
            ));
        }
        match chart.api_version.as_deref() {
            Some("v1" | "v2") => Ok(chart),
            _ => Err("The apiVersion in its Chart.yaml must be v1 or v2".to_owned()),
        }
    }

    /// Returns true if the chart has this name, and if its name and version are valid. Charts from
    /// an upstream's index need this check, because the index may contain anything.
    pub(crate) fn is_valid_for(&self, name: &str) -> bool {
        self.name == name && name::is_name(name) && name::version(&self.version).is_some()
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::Chart;
    use proptest::prelude::*;

    #[test]
    fn a_chart_yaml_is_read() {
        let text = "apiVersion: v2\nname: demo\nversion: 1.2.0\nappVersion: \"1.16\"\ntype: application\nkeywords: [a, b]\n\
                    maintainers:\n- name: Ann\n  email: ann@example.org\ndependencies:\n- name: redis\n  version: ^17\n  \
                    repository: https://example.org\n  import-values: [data, {child: a, parent: b}]\nunknown: 7\nhome: null\n";
        let chart = Chart::read(text.as_bytes()).unwrap();
        assert_eq!((chart.name.as_str(), chart.version.as_str()), ("demo", "1.2.0"));
        assert_eq!(chart.app_version.as_deref(), Some("1.16"));
        assert_eq!(chart.dependencies.as_ref().unwrap()[0].version.as_deref(), Some("^17"));
        let json = serde_json::to_value(&chart).unwrap();
        assert!(json.get("unknown").is_none() && json.get("home").is_none());
        assert_eq!(json["type"], "application");
        assert_eq!(json["dependencies"][0]["import-values"][1]["child"], "a");
    }

    #[test]
    fn an_invalid_chart_yaml_is_refused_with_a_reason() {
        for (text, words) in [
            ("", "Chart.yaml"),
            ("apiVersion: v2\nname: a/b\nversion: 1.0.0", "name \"a/b\""),
            ("apiVersion: v2\nname: demo\nversion: latest", "not a semantic version"),
            ("name: demo\nversion: 1.0.0", "apiVersion"),
            ("apiVersion: v9\nname: demo\nversion: 1.0.0", "apiVersion"),
            ("[1, 2", "cannot be read"),
            ("a: &a [x]\nb: [*a, *a]\napiVersion: v2\nname: demo\nversion: {}", "Chart.yaml"),
        ] {
            let refused = Chart::read(text.as_bytes()).unwrap_err();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_handled(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Chart::read(&bytes);
        }

        #[test]
        fn any_text_is_handled(text in "(apiVersion: v2\n)?[a-z:\\-\n \\[\\]{}&*!'\"|>#,]{0,80}") {
            let _ = Chart::read(text.as_bytes());
        }
    }
}
