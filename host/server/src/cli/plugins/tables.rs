//! `packhouse plugins test`: a project's own tests, and its protocol's tables through the component, the runtime and a whole server.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use packhouse_authoring as authoring;
use packhouse_identity::random_password;
use packhouse_runtime::{Inspection, inspect};
use packhouse_testkit::{Missed, Table, examine};
use serde_json::json;

use super::inner::{Inner, Start};
use super::project::component;
use super::wire::Wire;
use crate::cli::print;

/// What stands in links for the server's address, as in the memory host.
const HOST: &str = "packhouse.test";
/// Where tables lie that are written by hand.
const BY_HAND: &str = "tests/tables";

/// Runs them. An error where a row's answer is not as it must be.
pub(super) async fn test(folder: PathBuf) -> anyhow::Result<()> {
    let kept = tempfile::tempdir().context("failed to make a temporary folder")?;
    let (own, into) = (folder.clone(), kept.path().to_owned());
    tokio::task::spawn_blocking(move || authoring::own_tests(&own, &into)).await??;
    let file = component(folder.clone(), None).await?;
    let found = tokio::task::spawn_blocking(move || inspect(&file)).await??;
    let mut tables = read(kept.path(), false)?;
    if folder.join(BY_HAND).is_dir() {
        tables.extend(read(&folder.join(BY_HAND), true)?);
    }
    ensure!(
        !tables.is_empty(),
        "there is no table to run: write one into {BY_HAND}/NAME.json, or call `packhouse_testkit::run` in a test of the project, for \
         a hosted repository to which nothing was sent before"
    );
    let (mut rows, mut missed) = (0, 0);
    for table in &tables {
        let through = run(&found, table, &kept.path().join("compiled"))
            .await
            .with_context(|| format!("the table {}", table.name))?;
        print(&format!("{}: {} rows through the component", table.name, table.cases.len()))?;
        through.iter().try_for_each(|report| print(&format!("\n{report}")))?;
        (rows, missed) = (rows + table.cases.len(), missed + through.len());
    }
    if missed > 0 {
        bail!("{missed} of {rows} rows are answered otherwise than they must be");
    }
    print(&format!("all {rows} rows hold"))
}

/// The tables of a folder, in the order of their files' names; by those they are called where they are written by hand.
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
        table.map_err(|problem| anyhow!("{} is no table: {problem}", file.display()))
    };
    files.iter().map(table).collect()
}

/// What of a table does not hold, in a server of its own. `compiled` goes from server to server: an interpreter takes long to compile.
async fn run(found: &Inspection, table: &Table, compiled: &Path) -> anyhow::Result<Vec<String>> {
    let home = tempfile::tempdir().context("failed to make a temporary folder")?;
    let cache = home.path().join("data/cache");
    if compiled.is_dir() {
        std::fs::create_dir(home.path().join("data")).and_then(|()| std::fs::rename(compiled, &cache))?;
    }
    let password = random_password();
    let mut inner = Inner::start(Start {
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
    let (_, token) = inner.furnish(password.reveal(), &body).await?;
    let mut wire = Wire {
        inner: &mut inner,
        description: &found.description,
        repository: &table.repository,
        token: &token,
        host: HOST,
        heard: HashMap::new(),
    };
    let missed = examine(&mut wire, &table.cases);
    let reports = missed.iter().map(|missed| report(missed, &wire)).collect();
    inner.end().await;
    if cache.is_dir() {
        std::fs::rename(&cache, compiled)?;
    }
    Ok(reports)
}

/// The row, and what the log has of its request.
fn report(missed: &Missed, wire: &Wire<'_>) -> String {
    let id = missed.answer.header("x-request-id").unwrap_or_default();
    let heard = wire.heard.get(id).into_iter().flatten();
    let lines =
        heard.filter(|line| line.is_worth_reading()).map(|line| format!("  log: {}\n", line.for_people()));
    format!("{}{}", missed.text, lines.collect::<String>())
}
