//! `packhouse doctor`: looks at everything that a server needs, and says what is not well and what to do about it. It changes nothing,
//! and can run beside a server.

mod addresses;
mod advisories;
mod certificates;
mod disk;
mod plugins;
mod storage;

use std::path::Path;

use anyhow::bail;
use packhouse_config::{Config, Inputs, Mistakes};

use super::print;

/// What was found, in the order in which it was looked at.
#[derive(Default)]
struct Findings {
    lines: Vec<(Kind, String)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// All is well with it.
    Well,
    /// Worth knowing, and no fault.
    Note,
    /// Not well.
    Wrong,
}

impl Findings {
    fn well(&mut self, sentence: impl Into<String>) {
        self.lines.push((Kind::Well, sentence.into()));
    }

    fn note(&mut self, sentence: impl Into<String>) {
        self.lines.push((Kind::Note, sentence.into()));
    }

    fn wrong(&mut self, sentence: impl Into<String>) {
        self.lines.push((Kind::Wrong, sentence.into()));
    }

    fn faults(&self) -> usize {
        self.lines.iter().filter(|(kind, _)| *kind == Kind::Wrong).count()
    }

    /// Says that all is well, unless something was found wrong since then.
    fn well_unless(&mut self, faults_before: usize, sentence: impl Into<String>) {
        if self.faults() == faults_before {
            self.well(sentence);
        }
    }

    fn text(&self) -> String {
        let line = |(kind, sentence): &(Kind, String)| {
            let word = match kind {
                Kind::Well => "well ",
                Kind::Note => "note ",
                Kind::Wrong => "WRONG",
            };
            format!("{word} {}", sentence.replace('\n', " "))
        };
        self.lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Looks at everything. An error when anything is not well; what, is printed.
pub(super) async fn run(inputs: &Inputs, program: &Path) -> anyhow::Result<()> {
    let mut findings = Findings::default();
    match Config::load(inputs, program) {
        Ok((config, warnings)) => {
            warnings.into_iter().for_each(|warning| findings.note(warning));
            findings.well("configuration: every setting is one that this program knows");
            examine(&config, &mut findings).await;
        }
        Err(error) => match error.downcast_ref::<Mistakes>() {
            Some(Mistakes(mistakes)) => mistakes.iter().for_each(|mistake| findings.wrong(&mistake.sentence)),
            None => findings.wrong(error.to_string()),
        },
    }
    print(&findings.text())?;
    match findings.faults() {
        0 => Ok(()),
        1 => bail!("one thing is not well"),
        faults => bail!("{faults} things are not well"),
    }
}

async fn examine(config: &Config, findings: &mut Findings) {
    let running = disk::examine(config, findings);
    let current = storage::examine(config, findings).await;
    addresses::examine(config, running, findings).await;
    certificates::examine(config, current, findings).await;
    plugins::examine(config, current, findings).await;
    if current {
        advisories::examine(config, findings).await;
    }
}
