//! `packhouse doctor`: checks the installation and suggests fixes. It changes nothing and can run
//! beside a server.

mod addresses;
mod advisories;
mod certificates;
mod disk;
mod plugins;
mod storage;

use std::path::Path;

use anyhow::bail;
use packhouse_config::{Config, ConfigErrors, Inputs};

use super::{health, print};

/// Results of the checks, in the order in which they ran.
#[derive(Default)]
struct Findings {
    lines: Vec<(FindingKind, String)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum FindingKind {
    Ok,
    /// Worth knowing, but not a problem.
    Note,
    /// A problem that needs fixing.
    Wrong,
}

impl Findings {
    fn ok(&mut self, sentence: impl Into<String>) {
        self.lines.push((FindingKind::Ok, sentence.into()));
    }

    fn note(&mut self, sentence: impl Into<String>) {
        self.lines.push((FindingKind::Note, sentence.into()));
    }

    fn wrong(&mut self, sentence: impl Into<String>) {
        self.lines.push((FindingKind::Wrong, sentence.into()));
    }

    fn faults(&self) -> usize {
        self.lines.iter().filter(|(kind, _)| *kind == FindingKind::Wrong).count()
    }

    /// Adds an `ok` line if the number of problems is still `faults_before`.
    fn ok_unless(&mut self, faults_before: usize, sentence: impl Into<String>) {
        if self.faults() == faults_before {
            self.ok(sentence);
        }
    }

    fn text(&self) -> String {
        let line = |(kind, sentence): &(FindingKind, String)| {
            let word = match kind {
                FindingKind::Ok => "ok   ",
                FindingKind::Note => "note ",
                FindingKind::Wrong => "WRONG",
            };
            format!("{word} {}", sentence.replace('\n', " "))
        };
        self.lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Runs all checks and prints the findings. Fails if there is a problem.
pub(super) async fn run(inputs: &Inputs, program: &Path) -> anyhow::Result<()> {
    let mut findings = Findings::default();
    match Config::load(inputs, program) {
        Ok((config, warnings)) => {
            warnings.into_iter().for_each(|warning| findings.note(warning));
            findings.ok("configuration: all settings are known");
            examine(&config, &mut findings).await;
        }
        Err(error) => match error.downcast_ref::<ConfigErrors>() {
            Some(ConfigErrors(mistakes)) => {
                mistakes.iter().for_each(|mistake| findings.wrong(&mistake.sentence))
            }
            None => findings.wrong(error.to_string()),
        },
    }
    print(&findings.text())?;
    match findings.faults() {
        0 => Ok(()),
        1 => bail!("1 problem found"),
        faults => bail!("{faults} problems found"),
    }
}

async fn examine(config: &Config, findings: &mut Findings) {
    let on_data_folder = disk::examine(config, findings);
    // With PostgreSQL and S3, a server may run on another data folder.
    let running = on_data_folder || health::is_live(config).await;
    if running && !on_data_folder {
        findings.note(format!("a server is running at {} (api_listen)", config.api_listen));
    }
    let current = storage::examine(config, findings).await;
    addresses::examine(config, running, findings).await;
    certificates::examine(config, current, findings).await;
    plugins::examine(config, current, findings).await;
    if current {
        advisories::examine(config, findings).await;
    }
}
