//! The licence that a POM states. It is an SPDX expression if the names or addresses of the POM's
//! licences are known, and otherwise the words of the POM. If a POM states several licences, users
//! may choose one, as Maven defines it.

use crate::layout::VersionFile;
use crate::pom::{self, Pom, PomLicence};
use crate::records::{self, FileRecord};
use packhouse_sdk::{Blob, Error, Expectation, ReadAt, Repository, Transaction};

/// Longest licence text that is stored, in bytes.
const LENGTH: usize = 512;
/// End of the file name of a POM.
pub(crate) const POM: &str = ".pom";

/// Names of licences, with their SPDX identifiers. The names are in lower case, without `the`,
/// `license`, `licence` and punctuation.
const NAMES: [(&str, &str); 34] = [
    ("apache version 2.0", "Apache-2.0"),
    ("apache 2.0", "Apache-2.0"),
    ("apache 2", "Apache-2.0"),
    ("apache v2.0", "Apache-2.0"),
    ("apache v2", "Apache-2.0"),
    ("apache software version 2.0", "Apache-2.0"),
    ("apache software 2.0", "Apache-2.0"),
    ("asl 2.0", "Apache-2.0"),
    ("mit", "MIT"),
    ("mit mit", "MIT"),
    ("isc", "ISC"),
    ("bsd 2-clause", "BSD-2-Clause"),
    ("bsd-2-clause", "BSD-2-Clause"),
    ("simplified bsd", "BSD-2-Clause"),
    ("bsd 3-clause", "BSD-3-Clause"),
    ("3-clause bsd", "BSD-3-Clause"),
    ("new bsd", "BSD-3-Clause"),
    ("revised bsd", "BSD-3-Clause"),
    ("modified bsd", "BSD-3-Clause"),
    ("eclipse distribution - v 1.0", "BSD-3-Clause"),
    ("edl 1.0", "BSD-3-Clause"),
    ("eclipse public 1.0", "EPL-1.0"),
    ("eclipse public - v 1.0", "EPL-1.0"),
    ("eclipse public v1.0", "EPL-1.0"),
    ("epl 1.0", "EPL-1.0"),
    ("eclipse public 2.0", "EPL-2.0"),
    ("eclipse public - v 2.0", "EPL-2.0"),
    ("eclipse public v2.0", "EPL-2.0"),
    ("epl 2.0", "EPL-2.0"),
    ("mozilla public version 2.0", "MPL-2.0"),
    ("mozilla public 2.0", "MPL-2.0"),
    ("mpl 2.0", "MPL-2.0"),
    ("unlicense", "Unlicense"),
    ("cc0 1.0 universal", "CC0-1.0"),
];

/// Addresses of licence texts, with their SPDX identifiers. Each is the start of an address,
/// without its scheme and `www.`.
const ADDRESSES: [(&str, &str); 12] = [
    ("apache.org/licenses/license-2.0", "Apache-2.0"),
    ("opensource.org/licenses/apache-2.0", "Apache-2.0"),
    ("opensource.org/licenses/mit", "MIT"),
    ("opensource.org/license/mit", "MIT"),
    ("opensource.org/licenses/isc", "ISC"),
    ("opensource.org/licenses/bsd-2-clause", "BSD-2-Clause"),
    ("opensource.org/licenses/bsd-3-clause", "BSD-3-Clause"),
    ("eclipse.org/legal/epl-v10", "EPL-1.0"),
    ("eclipse.org/legal/epl-2.0", "EPL-2.0"),
    ("eclipse.org/legal/epl-v20", "EPL-2.0"),
    ("eclipse.org/org/documents/edl-v10", "BSD-3-Clause"),
    ("mozilla.org/mpl/2.0", "MPL-2.0"),
];

impl PomLicence {
    /// The SPDX identifier; `None` if neither the name nor the address of the licence is known.
    fn identifier(&self) -> Option<&str> {
        let written = self.name.trim();
        let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '+');
        if written.contains('-') && written.chars().all(is_token) && !written.ends_with('-') {
            return Some(written);
        }
        let (name, url) = (words(written), self.url.trim().to_ascii_lowercase());
        let address = url.split_once("://").map_or(url.as_str(), |(_, address)| address);
        let address = address.strip_prefix("www.").unwrap_or(address);
        let by_name = NAMES.iter().find(|(known, _)| *known == name);
        let found = by_name.or_else(|| ADDRESSES.iter().find(|(known, _)| address.starts_with(known)));
        found.map(|(_, identifier)| *identifier)
    }

    fn text(&self) -> &str {
        let name = self.name.trim();
        if name.is_empty() { self.url.trim() } else { name }
    }
}

/// Normalizes a name: lower case, without the words and marks that authors write in different ways.
fn words(name: &str) -> String {
    let name = name.to_ascii_lowercase().replace([',', ';', '(', ')', '"'], " ");
    let words = name.split_whitespace().filter(|word| !matches!(*word, "the" | "license" | "licence"));
    words.collect::<Vec<_>>().join(" ")
}

/// The licences as one text; empty if none has a name or an address.
pub(crate) fn stated(licences: &[PomLicence]) -> String {
    let named: Vec<&PomLicence> = licences.iter().filter(|licence| !licence.text().is_empty()).collect();
    let known: Option<Vec<&str>> = named.iter().map(|licence| licence.identifier()).collect();
    let mut text = match known {
        Some(known) => known.join(" OR "),
        None => named.iter().map(|licence| licence.text()).collect::<Vec<_>>().join(", "),
    };
    text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.truncate(text.floor_char_boundary(LENGTH));
    text
}

/// The licence that a file states if it is a POM; empty for other files and for large POMs.
///
/// # Errors
/// Returns the host's error.
pub(crate) fn of_pom(item: &VersionFile, body: &Blob) -> Result<String, Error> {
    if item.tail != POM || body.size()? > pom::LIMIT {
        return Ok(String::new());
    }
    Ok(stated(&Pom::read(&body.read_all(pom::LIMIT)?).licences))
}

/// Returns the licence of the version that a file belongs to, from the record of the version's POM.
/// Empty if the POM is not stored. The change then requires that the POM stays absent, so a POM
/// that arrives meanwhile makes the commit stale.
///
/// # Errors
/// Returns the host's error.
pub(crate) fn of_version(
    repository: &Repository,
    change: &mut Transaction,
    item: &VersionFile,
    path: &str,
) -> Result<String, Error> {
    let Some(base) = path.strip_suffix(item.tail.as_str()) else { return Ok(String::new()) };
    let key = records::file(&format!("{base}{POM}"));
    match repository.get_json::<FileRecord>(&key)? {
        Some(existing) => Ok(existing.value.licence),
        None => {
            change.require(&key, Expectation::Absent);
            Ok(String::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn licence_of(licences: &[(&str, &str)]) -> String {
        let licence =
            |(name, url): &(&str, &str)| PomLicence { name: (*name).to_owned(), url: (*url).to_owned() };
        stated(&licences.iter().map(licence).collect::<Vec<_>>())
    }

    #[test]
    fn known_names_and_addresses_become_spdx_identifiers() {
        for (name, url, identifier) in [
            ("The Apache Software License, Version 2.0", "", "Apache-2.0"),
            ("Apache License, Version 2.0", "", "Apache-2.0"),
            ("Apache-2.0", "", "Apache-2.0"),
            ("The MIT License (MIT)", "", "MIT"),
            ("Our own words", "https://www.apache.org/licenses/LICENSE-2.0.txt", "Apache-2.0"),
            ("", "http://opensource.org/licenses/MIT", "MIT"),
            ("Eclipse Public License v2.0", "", "EPL-2.0"),
            ("LGPL-2.1-or-later", "", "LGPL-2.1-or-later"),
            ("GNU Lesser General Public License", "", "GNU Lesser General Public License"),
            ("Proprietary", "https://example.com/terms", "Proprietary"),
            ("", "https://example.com/terms", "https://example.com/terms"),
            ("", "", ""),
        ] {
            assert_eq!(licence_of(&[(name, url)]), identifier, "{name} {url}");
        }
    }

    #[test]
    fn several_licences_are_alternatives_and_unknown_names_stay() {
        assert_eq!(licence_of(&[("EPL 1.0", ""), ("LGPL-2.1-only", "")]), "EPL-1.0 OR LGPL-2.1-only");
        assert_eq!(licence_of(&[("MIT", ""), ("Commercial\n License", "")]), "MIT, Commercial License");
        assert_eq!(licence_of(&[("MIT", ""), ("", "")]), "MIT");
        assert_eq!(licence_of(&[]), "");
        assert!(licence_of(&[(&"é".repeat(LENGTH), "")]).len() <= LENGTH);
    }
}
