//! `packhouse plugins test`: runs a project's own tests, and its protocol tables against its
//! component in a server.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use packhouse_authoring as authoring;
use packhouse_identity::random_password;
use packhouse_runtime::{Inspection, inspect};
use packhouse_testkit::{Missed, Table, examine};
use serde_json::json;

use super::child_server::{ChildServer, StartOptions};
use super::project::component;
use super::wire::Wire;
use crate::cli::print;

/// Host name of the server in links, as in the in-memory host.
const HOST: &str = "packhouse.test";
const BY_HAND: &str = "tests/tables";

/// Runs all tests. Fails if a row has an unexpected answer.
pub(super) async fn test(folder: PathBuf) -> anyhow::Result<()> {
    let temporary = tempfile::tempdir().context("failed to create a temporary folder")?;
    let (own, into) = (folder.clone(), temporary.path().to_owned());
    tokio::task::spawn_blocking(move || authoring::own_tests(&own, &into)).await??;
    let file = component(folder.clone(), None).await?;
    let found = tokio::task::spawn_blocking(move || inspect(&file)).await??;
    let mut tables = read(temporary.path(), false)?;
    if folder.join(BY_HAND).is_dir() {
        tables.extend(read(&folder.join(BY_HAND), true)?);
    }
    ensure!(
        !tables.is_empty(),
        "there is no table to run: write one to {BY_HAND}/NAME.json, or call `packhouse_testkit::run` in a test of the project, for \
         an empty hosted repository"
    );
    let (mut rows, mut missed) = (0, 0);
    for table in &tables {
        let through = run(&found, table, &temporary.path().join("compiled"))
            .await
            .with_context(|| format!("the table {}", table.name))?;
        print(&format!("{}: {} rows through the component", table.name, table.cases.len()))?;
        through.iter().try_for_each(|report| print(&format!("\n{report}")))?;
        (rows, missed) = (rows + table.cases.len(), missed + through.len());
    }
    if missed > 0 {
        bail!("{missed} of {rows} rows failed");
    }
    print(&format!("all {rows} rows passed"))
}

/// Reads the tables of a folder, sorted by file name. Hand-written tables take the name of their
/// file.
fn read(folder: &Path, by_hand: bool) -> anyhow::Result<Vec<Table>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let table = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
        let mut table = text.and_then(|text| Table::read(&text));
        if let (Ok(table), true) = (&mut table, by_hand) {
            table.name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        }
        table.map_err(|problem| anyhow!("{} is not a valid table: {problem}", file.display()))
    };
    files.iter().map(table).collect()
}

/// Runs a table against a new server and returns the failures. `compiled` caches compiled code
/// between servers, because an interpreter takes long to compile.
async fn run(found: &Inspection, table: &Table, compiled: &Path) -> anyhow::Result<Vec<String>> {
    let home = tempfile::tempdir().context("failed to create a temporary folder")?;
    let cache = home.path().join("data/cache");
    if compiled.is_dir() {
        std::fs::create_dir(home.path().join("data")).and_then(|()| std::fs::rename(compiled, &cache))?;
    }
    let password = random_password();
    let mut server = ChildServer::start(StartOptions {
        component: found,
        home: home.path(),
        password: password.reveal(),
        listen: ["127.0.0.1:0".to_owned(), "127.0.0.1:0".to_owned()],
        base_url: Some(&format!("https://{HOST}")),
    })
    .await?;
    let format = &found.description.format;
    let body =
        json!({"name": table.repository, "format": format, "kind": "hosted", "settings": table.settings});
    let (_, token) = server.create_repository(password.reveal(), &body).await?;
    let mut wire = Wire {
        server: &mut server,
        description: &found.description,
        repository: &table.repository,
        token: &token,
        host: HOST,
        log: HashMap::new(),
    };
    let missed = examine(&mut wire, &table.cases);
    let reports = missed.iter().map(|missed| report(missed, &wire)).collect();
    server.end().await;
    if cache.is_dir() {
        std::fs::rename(&cache, compiled)?;
    }
    Ok(reports)
}

/// Formats a failed row, with the warnings and plugin output of its request.
fn report(missed: &Missed, wire: &Wire<'_>) -> String {
    let id = missed.answer.header("x-request-id").unwrap_or_default();
    let log = wire.log.get(id).into_iter().flatten();
    let lines =
        log.filter(|line| line.is_worth_reading()).map(|line| format!("  log: {}\n", line.for_people()));
    format!("{}{}", missed.text, lines.collect::<String>())
}
