//! `xtask lint`: counts what makes code and documentation hard to read, and compares the counts
//! with bounds that may only fall.

mod measure;
mod names;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};

use measure::{DOCS, Findings, findings};

/// File of the bounds: counts by scope and measure. A missing bound is 0.
const BOUNDS: &str = "xtask/plain-english.json";

/// Number of sentences over 25 words in each thousand sentences. This is a share, because pages are
/// added and removed.
const LONG_PERMILLE: &str = "long_sentences_permille";

/// Counts by scope and measure.
type Counts = BTreeMap<String, BTreeMap<String, usize>>;

/// Compares the counts with the bounds. Fails if a count is above its bound.
pub(crate) fn check(root: &Path) -> Result<()> {
    let text =
        std::fs::read_to_string(root.join(BOUNDS)).with_context(|| format!("failed to read {BOUNDS}"))?;
    let bounds: Counts = serde_json::from_str(&text).with_context(|| format!("{BOUNDS} is malformed"))?;
    let counts = counts(&findings(root)?);
    let (mut above, mut is_below) = (Vec::new(), false);
    let scopes: BTreeSet<&String> = counts.keys().chain(bounds.keys()).collect();
    for scope in scopes {
        let of = |counts: &Counts| counts.get(scope).cloned().unwrap_or_default();
        let (counts, bounds) = (of(&counts), of(&bounds));
        let measures: BTreeSet<&String> = counts.keys().chain(bounds.keys()).collect();
        for measure in measures {
            let of = |counts: &BTreeMap<String, usize>| counts.get(measure).copied().unwrap_or_default();
            let (count, bound) = (of(&counts), of(&bounds));
            is_below |= count < bound;
            if count > bound {
                above.push(format!("{scope}: {count} {measure}, at most {bound} are allowed"));
            }
        }
    }
    if is_below {
        println!("some counts are below their bounds: `just lint-bounds` lowers the bounds");
    }
    if !above.is_empty() {
        let advice = "`cargo run -p xtask --release -- lint --show MEASURE PATH` lists the places";
        bail!("text that is hard to read was added ({advice}):\n{}", above.join("\n"));
    }
    Ok(())
}

/// Writes the current counts as bounds.
pub(crate) fn write(root: &Path) -> Result<()> {
    let counts = serde_json::to_string_pretty(&counts(&findings(root)?))?;
    std::fs::write(root.join(BOUNDS), counts + "\n").with_context(|| format!("failed to write {BOUNDS}"))
}

/// Prints the findings of a measure. If `path` is not empty, prints only findings of this crate or
/// below this path.
pub(crate) fn show(root: &Path, measure: &str, path: &str) -> Result<()> {
    let measure = if measure == LONG_PERMILLE { "long_sentences" } else { measure };
    for finding in findings(root)?.all {
        if finding.measure == measure && (finding.place.starts_with(path) || finding.scope == path) {
            println!("{}: {}", finding.place, finding.text.trim());
        }
    }
    Ok(())
}

fn counts(findings: &Findings) -> Counts {
    let mut counts = Counts::new();
    let mut long = 0;
    for finding in &findings.all {
        if finding.scope == DOCS {
            long += 1;
            continue;
        }
        let counts = counts.entry(finding.scope.clone()).or_default();
        *counts.entry(finding.measure.to_owned()).or_default() += 1;
    }
    let permille = (long * 1000_usize).div_ceil(findings.sentences.max(1));
    counts.entry(DOCS.to_owned()).or_default().insert(LONG_PERMILLE.to_owned(), permille);
    counts
}
