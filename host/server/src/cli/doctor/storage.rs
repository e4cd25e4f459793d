//! The database and the storage of blobs, and the key with which secrets in them are sealed.

use packhouse_app::mail::Mail;
use packhouse_config::Config;
use packhouse_identity::Sealer;
use packhouse_store::{DatabaseFacts, examine_blobs, examine_database, known_schema};

use super::Findings;

/// A difference of clocks that is worth a word, in ms.
const SKEW_MS: u64 = 1000;

/// Looks at both; whether the database is there with the schema that this program knows.
pub(super) async fn examine(config: &Config, findings: &mut Findings) -> bool {
    let current = database(config, findings).await;
    blobs(config, findings).await;
    if let Err(error) = Mail::new(config) {
        findings.wrong(format!("{}: {error:#}", config.sources.label("smtp_url")));
    }
    current
}

async fn database(config: &Config, findings: &mut Findings) -> bool {
    let (setting, before) = (config.sources.label("database_url"), findings.faults());
    let facts = match examine_database(&config.store).await {
        Ok(facts) => facts,
        Err(error) => {
            findings.wrong(format!(
                "{setting}: the database cannot be used: {}; see that it runs, that this address is its own, and that it takes this \
                 role and password",
                error.reason()
            ));
            return false;
        }
    };
    facts.problems.iter().for_each(|problem| findings.wrong(format!("{setting}: {problem}")));
    if let Some(ahead) = facts.clock_ahead_ms.filter(|ahead| ahead.unsigned_abs() > SKEW_MS) {
        findings.wrong(format!(
            "{setting}: this machine's clock is {ahead} ms ahead of the database's; set both by the same time service"
        ));
    }
    schema(&facts, &setting, findings);
    if facts.damaged_blobs > 0 {
        findings.wrong(format!(
            "blobs: reads found {} of them missing or damaged; `packhouse scrub` names them with their records, and whoever publishes \
             the same bytes again repairs them",
            facts.damaged_blobs
        ));
    }
    sealing_key(config, &facts, findings);
    let known = known_schema();
    findings.well_unless(
        before,
        format!("database: it answers, with step {} of {known} of the schema", facts.schema),
    );
    facts.exists && facts.schema == known && findings.faults() == before
}

fn schema(facts: &DatabaseFacts, setting: &str, findings: &mut Findings) {
    let known = known_schema();
    match facts.schema {
        _ if !facts.exists => findings.note(format!("{setting} is not there yet; the first start makes it")),
        newer if newer > known => findings.wrong(format!(
            "{setting} was written by a newer version of this program (step {newer} of its schema, and this one knows {known}); \
             start that one"
        )),
        // What the schema is was not to be seen.
        0 if !facts.problems.is_empty() => {}
        0 => findings.note(format!("{setting} is empty; the first start makes its tables")),
        older if older < known => findings.note(format!(
            "{setting} is of an earlier version (step {older} of {known}); the next start, or `packhouse migrate`, takes the rest"
        )),
        _ => {}
    }
}

fn sealing_key(config: &Config, facts: &DatabaseFacts, findings: &mut Findings) {
    let Some(last) = &facts.sealing_key else { return };
    if config.sealing_key.is_none() && !config.data.join("sealing.key").exists() {
        findings.wrong(format!(
            "sealing_key: the database holds secrets that were sealed with a key that is not here; set it to that of the other \
             servers, or bring the file sealing.key back into {}",
            config.data.display()
        ));
        return;
    }
    match Sealer::new(config.sealing_key.clone(), &config.data).id() {
        Ok(own) if own == last => {}
        Ok(_) => findings.wrong(format!(
            "{} is another key than the one that the database was last served with; set it to that of the other servers, or set \
             client secrets and upstream credentials anew",
            config.sources.label("sealing_key")
        )),
        Err(error) => findings.wrong(format!("{}: {error}", config.sources.label("sealing_key"))),
    }
}

async fn blobs(config: &Config, findings: &mut Findings) {
    if !config.data.exists() {
        return;
    }
    match examine_blobs(&config.store).await {
        Ok(()) => findings.well("blobs: one was written, read and removed"),
        Err(error) => findings.wrong(format!(
            "{}: the storage of blobs cannot be used: {}; see that it is there, and that it takes this key",
            config.sources.label("blobs"),
            error.reason()
        )),
    }
}
