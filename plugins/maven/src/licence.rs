//! The licence that a POM states, as an expression of SPDX where its names or addresses are those of one, else in its own words. Of several
//! licences one may be chosen, as Maven has it.

use crate::layout::Item;
use crate::pom::{self, Pom, PomLicence};
use crate::records::{self, FileRecord};
use packhouse_sdk::{Blob, Error, Expectation, ReadAt, Repository, Transaction};

/// Characters of it that are kept.
const LENGTH: usize = 512;
/// How a POM's file ends.
pub(crate) const POM: &str = ".pom";

/// What people write, in lower case and without `the`, `license`, `licence` and punctuation.
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

/// Where the texts of licences lie: an address without its scheme and `www.` that begins so.
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
    /// Its identifier of SPDX; none where it is in its author's own words.
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

/// In lower case, without the words and marks that everybody writes otherwise.
fn words(name: &str) -> String {
    let name = name.to_ascii_lowercase().replace([',', ';', '(', ')', '"'], " ");
    let kept = name.split_whitespace().filter(|word| !matches!(*word, "the" | "license" | "licence"));
    kept.collect::<Vec<_>>().join(" ")
}

/// What these licences say together; empty where there is none.
pub(crate) fn stated(licences: &[PomLicence]) -> String {
    let named: Vec<&PomLicence> = licences.iter().filter(|licence| !licence.text().is_empty()).collect();
    let known: Option<Vec<&str>> = named.iter().map(|licence| licence.identifier()).collect();
    let mut said = match known {
        Some(known) => known.join(" OR "),
        None => named.iter().map(|licence| licence.text()).collect::<Vec<_>>().join(", "),
    };
    said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    said.truncate(said.floor_char_boundary(LENGTH));
    said
}

/// The licence that a POM's bytes state.
///
/// # Errors
/// The host's.
pub(crate) fn of_pom(item: &Item, body: &Blob) -> Result<String, Error> {
    if item.tail != POM || body.size()? > pom::LIMIT {
        return Ok(String::new());
    }
    Ok(stated(&Pom::read(&body.read_all(pom::LIMIT)?).licences))
}

/// The licence of the version that a file belongs to, by its POM where that is there. The commit is stale where the POM comes meanwhile.
///
/// # Errors
/// The host's.
pub(crate) fn of_version(
    repository: &Repository,
    change: &mut Transaction,
    item: &Item,
    path: &str,
) -> Result<String, Error> {
    let Some(base) = path.strip_suffix(item.tail.as_str()) else { return Ok(String::new()) };
    let key = records::file(&format!("{base}{POM}"));
    match repository.get_json::<FileRecord>(&key)? {
        Some(there) => Ok(there.value.licence),
        None => {
            change.require(&key, Expectation::Absent);
            Ok(String::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(licences: &[(&str, &str)]) -> String {
        let licence =
            |(name, url): &(&str, &str)| PomLicence { name: (*name).to_owned(), url: (*url).to_owned() };
        stated(&licences.iter().map(licence).collect::<Vec<_>>())
    }

    #[test]
    fn names_and_addresses_are_those_of_spdx_where_they_are_known() {
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
            assert_eq!(said(&[(name, url)]), identifier, "{name} {url}");
        }
    }

    #[test]
    fn one_of_several_may_be_chosen_and_words_stand_as_they_are() {
        assert_eq!(said(&[("EPL 1.0", ""), ("LGPL-2.1-only", "")]), "EPL-1.0 OR LGPL-2.1-only");
        assert_eq!(said(&[("MIT", ""), ("Commercial\n License", "")]), "MIT, Commercial License");
        assert_eq!(said(&[("MIT", ""), ("", "")]), "MIT");
        assert_eq!(said(&[]), "");
        assert!(said(&[(&"é".repeat(LENGTH), "")]).len() <= LENGTH);
    }
}
