//! Checks of the database, the blob storage and the sealing key.

use packhouse_app::mail::Mail;
use packhouse_config::Config;
use packhouse_identity::Sealer;
use packhouse_store::{DatabaseFacts, examine_blobs, examine_database, known_schema};

use super::Findings;

/// Difference of clocks that is reported, in ms.
const SKEW_MS: u64 = 1000;

/// Checks database and blob storage. Returns true if the database exists with the schema of this
/// program.
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
                "{setting}: the database cannot be used: {}; check that it is running, that this address is correct, and that \
                 it accepts this role and password",
                error.reason()
            ));
            return false;
        }
    };
    facts.problems.iter().for_each(|problem| findings.wrong(format!("{setting}: {problem}")));
    if let Some(ahead) = facts.clock_ahead_ms.filter(|ahead| ahead.unsigned_abs() > SKEW_MS) {
        findings.wrong(format!(
            "{setting}: this machine's clock is {ahead} ms ahead of the database's; synchronize both with the same time service"
        ));
    }
    schema(&facts, &setting, findings);
    if facts.damaged_blobs > 0 {
        findings.wrong(format!(
            "blobs: reads found {} of them missing or damaged; `packhouse scrub` lists them with their records, and publishing \
             the same bytes again repairs them",
            facts.damaged_blobs
        ));
    }
    sealing_key(config, &facts, findings);
    let known = known_schema();
    findings.ok_unless(before, format!("database: reachable, schema at step {} of {known}", facts.schema));
    facts.exists && facts.schema == known && findings.faults() == before
}

fn schema(facts: &DatabaseFacts, setting: &str, findings: &mut Findings) {
    let known = known_schema();
    match facts.schema {
        _ if !facts.exists => findings.note(format!("{setting} does not exist yet; the first start creates it")),
        newer if newer > known => findings.wrong(format!(
            "{setting} was written by a newer version of this program (its schema is at step {newer}, and this version knows {known}); \
             start that version"
        )),
        // The database could not be examined, so 0 does not mean an empty schema.
        0 if !facts.problems.is_empty() => {}
        0 => findings.note(format!("{setting} is empty; the first start creates its tables")),
        older if older < known => findings.note(format!(
            "{setting} is of an earlier version (schema step {older} of {known}); the next start or `packhouse migrate` updates it"
        )),
        _ => {}
    }
}

fn sealing_key(config: &Config, facts: &DatabaseFacts, findings: &mut Findings) {
    let Some(last) = &facts.sealing_key else { return };
    if config.sealing_key.is_none() && !config.data.join("sealing.key").exists() {
        findings.wrong(format!(
            "sealing_key: the database contains secrets that are sealed with a key that is missing here; set it to the key of \
             the other servers, or restore the file sealing.key in {}",
            config.data.display()
        ));
        return;
    }
    match Sealer::new(config.sealing_key.clone(), &config.data).id() {
        Ok(own) if own == last => {}
        Ok(_) => findings.wrong(format!(
            "{} is not the key that the database was last served with; set it to the key of the other servers, or set \
             client secrets and upstream credentials again",
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
        Ok(()) => findings.ok("blobs: a test blob was written, read and removed"),
        Err(error) => findings.wrong(format!(
            "{}: the blob storage cannot be used: {}; check that it exists and accepts these credentials",
            config.sources.label("blobs"),
            error.reason()
        )),
    }
}
