//! Labels, help and groups of the host's settings for people. The key of a setting stays the name
//! in the API, on the command line and in files.

use packhouse_runtime::SettingUnit;

use super::form::SettingGroup;

/// Presentation of a setting of the host.
pub(super) struct Words {
    pub(super) group: SettingGroup,
    /// Kinds of repository that the setting applies to; empty for all.
    pub(super) kinds: &'static [&'static str],
    pub(super) unit: Option<SettingUnit>,
    pub(super) title: &'static str,
    /// Help of one sentence, with a period.
    pub(super) summary: &'static str,
}

const ALL: &[&str] = &[];
const HOSTED: &[&str] = &["hosted"];
const PROXY: &[&str] = &["proxy"];

/// Returns the presentation of a setting of the host.
pub(super) fn of(name: &str) -> Option<Words> {
    use SettingGroup::{Cache, Connection, Danger, Names, Publishing, Releases, Space};
    use SettingUnit::{Bytes, Days, Seconds};
    let (group, kinds, unit, title, summary) = match name {
        "redeploy" => (
            Publishing,
            HOSTED,
            None,
            "Publishing a file again",
            "Decides what happens when a client publishes a file that the repository already has.",
        ),
        "quota_bytes" => (
            Space,
            HOSTED,
            Some(Bytes),
            "Quota",
            "A publish that would exceed this size is refused; without a number there is no limit.",
        ),
        "trash_days" => (
            Space,
            HOSTED,
            Some(Days),
            "Keep deleted versions",
            "Deleted versions can be restored from the trash for this long; 0 deletes them at once.",
        ),
        "keep_untagged" => (
            Space,
            HOSTED,
            None,
            "Keep untagged images",
            "If this is off, an image is deleted as soon as its last tag is gone.",
        ),
        "claimed_names" => (
            Names,
            ALL,
            None,
            "Claimed names",
            "Packages with these names, with * for any text, are never fetched from an upstream.",
        ),
        "min_release_age_s" => (
            Releases,
            PROXY,
            Some(Seconds),
            "Minimum age of releases",
            "Younger releases of the upstream are neither listed nor served, so that bad ones are found first.",
        ),
        "min_release_age_except" => (
            Releases,
            PROXY,
            None,
            "Packages without a minimum age",
            "New releases of these packages, with * for any text, are served at once.",
        ),
        "keep_withdrawn" => (
            Releases,
            PROXY,
            None,
            "Keep withdrawn versions",
            "Cached versions stay available after the upstream has removed them.",
        ),
        "metadata_ttl_s" => (
            Cache,
            PROXY,
            Some(Seconds),
            "Refresh package lists after",
            "Lists of packages and versions are served from the cache for this long before the upstream is asked again.",
        ),
        "negative_ttl_s" => (
            Cache,
            PROXY,
            Some(Seconds),
            "Remember missing packages for",
            "The upstream is not asked again for a package that it does not have until this time has passed.",
        ),
        "stale_on_error" => (
            Cache,
            PROXY,
            None,
            "Serve the cache while the upstream fails",
            "Clients get the cached answer instead of an error if the upstream fails or is slow.",
        ),
        "cache_max_bytes" => (
            Cache,
            PROXY,
            Some(Bytes),
            "Size of the cache",
            "The files that were not used for longest are removed first; without a number there is no limit.",
        ),
        "offline" => (
            Connection,
            PROXY,
            None,
            "Offline",
            "Nothing is requested from the upstream; clients get only what is cached.",
        ),
        "upstream_timeout_s" => (
            Connection,
            PROXY,
            Some(Seconds),
            "Give up on the upstream after",
            "The upstream may send nothing for this long, at most one hour; without a number the server's setting applies.",
        ),
        "egress_proxy" => (
            Connection,
            PROXY,
            None,
            "HTTP proxy of your network",
            "Requests to the upstream go through this address, which must not contain a password.",
        ),
        "ca_pem" => (
            Connection,
            PROXY,
            None,
            "Certificate authorities",
            "PEM certificates of authorities that may sign the upstream's certificate, besides those of the system.",
        ),
        "public" => (
            Danger,
            ALL,
            None,
            "Public",
            "Everybody who reaches this server can read all packages without signing in.",
        ),
        "republish_deleted" => (
            Danger,
            HOSTED,
            None,
            "Publish deleted versions again",
            "A deleted version can come back with other content, which its users cannot notice.",
        ),
        _ => return None,
    };
    Some(Words { group, kinds, unit, title, summary })
}

/// Returns the words for a choice of a setting; the choice itself if it has none.
pub fn choice_title<'a>(name: &str, choice: &'a str) -> &'a str {
    match (name, choice) {
        ("redeploy", "deny") => "Refuse the file",
        ("redeploy", "identical") => "Accept the file if it has the same content",
        _ => choice,
    }
}

/// Converts the name of a setting to a label and its unit: `keep_empty_s` becomes `Keep empty`,
/// which counts seconds.
pub(super) fn from_name(name: &str) -> (String, Option<SettingUnit>) {
    let units = [("_s", SettingUnit::Seconds), ("_days", SettingUnit::Days), ("_bytes", SettingUnit::Bytes)];
    let with_unit = units.iter().find_map(|(end, unit)| Some((name.strip_suffix(*end)?, *unit)));
    let (words, unit) = with_unit.map_or((name, None), |(words, unit)| (words, Some(unit)));
    let words = words.replace('_', " ");
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    (format!("{first}{}", letters.as_str()), unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_a_label_and_a_unit() {
        assert_eq!(from_name("keep_empty_s"), ("Keep empty".to_owned(), Some(SettingUnit::Seconds)));
        assert_eq!(from_name("most_bytes"), ("Most".to_owned(), Some(SettingUnit::Bytes)));
        assert_eq!(from_name("strict"), ("Strict".to_owned(), None));
    }
}
