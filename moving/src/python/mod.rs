//! Python projects, read from a simple index (PEP 503, 691, 700, 592). The run uploads them to a
//! server, or writes them to a folder that is a simple index.

mod filename;
mod folder;
mod form;
mod simple;

use std::collections::BTreeMap;

use futures::stream;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::body::enclosed;
use crate::error::MoveError;
use crate::folder::Folder;
use crate::location::SourceLocation;
use crate::origin::Origin;
use crate::percent;
use crate::report::{MoveOutcome, ReportLine};
use crate::server::Server;
use crate::stream::measure;
use crate::target::{MoveRun, MoveTarget, Parcel, ask, published, sized};

use filename::normalized;
use form::UploadForm;
pub(crate) use simple::{PyFile, SimpleIndex};

/// Yank state of all files of a version.
#[derive(Default)]
struct VersionYanks {
    files: usize,
    yanked: usize,
    reason: String,
    /// Reason for the yank at the target. `None` if the version is not yanked at the target.
    there: Option<String>,
}

/// Moves the projects that the run selects. Without a selection, moves the projects in `names`, or
/// all projects of the index.
pub(crate) async fn run(
    run: &MoveRun,
    source: SimpleIndex,
    names: Option<Vec<String>>,
) -> Result<(), MoveError> {
    let names = match (names, run.only.is_empty()) {
        (_, false) => run.only.clone(),
        (Some(names), true) => names,
        (None, true) => source.projects().await?,
    };
    let mut names: Vec<String> = names.iter().map(|name| normalized(name)).collect();
    names.sort();
    names.dedup();
    run.each(stream::iter(&names), |name| async {
        match project(run, &source, name).await {
            Ok(()) => Ok(()),
            fault => run.ended(ReportLine::of("package", name), fault.map(|()| MoveOutcome::Present)),
        }
    })
    .await?;
    match &run.target {
        MoveTarget::Folder(folder) => folder::root(folder, &names).await,
        MoveTarget::Server(_) => Ok(()),
    }
}

async fn project(run: &MoveRun, source: &SimpleIndex, name: &str) -> Result<(), MoveError> {
    let mut listing = source.project(name).await?;
    // The newest file comes first. The last upload sets the time of a version at the target, and
    // this must be the time of its oldest file.
    listing.files.sort_by(|one, other| (other.uploaded, &other.filename).cmp(&(one.uploaded, &one.filename)));
    match &run.target {
        MoveTarget::Server(server) => {
            let there = SimpleIndex::below(SourceLocation::Server(server.client.clone())).project(name).await;
            let there = match there {
                Err(MoveError::Missing(_)) => Vec::new(),
                there => there?.files,
            };
            for file in &listing.files {
                upload(run, server, name, file, &there).await?;
            }
            states(run, server, name, &listing.files).await?;
            status(run, server, name, listing.status.as_ref()).await
        }
        MoveTarget::Folder(folder) => {
            let mut saved = Vec::new();
            for file in &listing.files {
                if save(run, folder, name, file).await? {
                    saved.push(file.clone());
                }
            }
            folder::project(folder, name, &saved, listing.status.as_ref()).await
        }
    }
}

fn parcel(line: ReportLine, file: &PyFile) -> Parcel {
    Parcel {
        line: line.published(file.uploaded),
        origin: file.origin.clone(),
        stated: file.hashes.clone(),
        size: file.size,
        published: file.uploaded,
    }
}

/// Moves one file to a server.
async fn upload(
    run: &MoveRun,
    server: &Server,
    project: &str,
    file: &PyFile,
    there: &[PyFile],
) -> Result<(), MoveError> {
    let mut line = ReportLine::file(project, &file.filename);
    let (filetype, version) = filename::read(&file.filename, project).unzip();
    if version.is_none() && !server.manages {
        let why = "the file is neither a wheel nor a source distribution of this project, and only a member with manage-repositories can move other files";
        run.report.add(line.ended(MoveOutcome::Skipped, why));
        return Ok(());
    }
    line.version.clone_from(&version);
    let mut parcel = parcel(line, file);
    let result = match there.iter().find(|known| known.filename == file.filename) {
        Some(known) => compare(&mut parcel, known).await,
        None => {
            let form = UploadForm { project, filetype, version: version.as_deref(), file };
            send(run, server, &mut parcel, file, form).await
        }
    };
    run.ended(parcel.line, result)
}

async fn compare(parcel: &mut Parcel, there: &PyFile) -> Result<MoveOutcome, MoveError> {
    let same = match parcel.stated.agree(&there.hashes) {
        Some(same) => same,
        None => {
            let measured = measure(parcel.origin.open().await?, parcel.stated.clone(), parcel.size).await?;
            measured.digests.agree(&there.hashes).unwrap_or(false)
        }
    };
    parcel.line.sha256 = there.hashes.sha256.clone();
    parcel.line.size = there.size;
    if same {
        Ok(MoveOutcome::Present)
    } else {
        Err(MoveError::Refused("the target has another file of this name, which is not replaced".to_owned()))
    }
}

async fn send(
    run: &MoveRun,
    server: &Server,
    parcel: &mut Parcel,
    file: &PyFile,
    form: UploadForm<'_>,
) -> Result<MoveOutcome, MoveError> {
    let sidecars = form::Sidecars::read(file).await?;
    let (before, after) = form.around(&sidecars);
    let url = server.url("")?;
    let measured = run
        .send(parcel, |body, length, at| {
            let whole = length.map(|length| length + (before.len() + after.len()) as u64);
            let request = sized(server.client.request(Method::POST, &url), whole);
            published(request, at).header(CONTENT_TYPE, form::media_type()).body(enclosed(
                before.clone(),
                body,
                after.clone(),
            ))
        })
        .await?;
    parcel.line.sha256 = measured.sha256();
    parcel.line.size = Some(measured.size);
    Ok(MoveOutcome::Moved)
}

/// Sets the yank state of each version to that of the source.
async fn states(run: &MoveRun, server: &Server, project: &str, files: &[PyFile]) -> Result<(), MoveError> {
    let there = match SimpleIndex::below(SourceLocation::Server(server.client.clone())).project(project).await
    {
        Err(MoveError::Missing(_)) => return Ok(()),
        there => there?.files,
    };
    let mut versions: BTreeMap<String, VersionYanks> = BTreeMap::new();
    for known in &there {
        let Some(file) = files.iter().find(|file| file.filename == known.filename) else { continue };
        let Some(version) = version_of(known) else { continue };
        let yanked = versions.entry(version).or_default();
        yanked.files += 1;
        yanked.there = known.yanked.clone().or(yanked.there.take());
        if let Some(reason) = &file.yanked {
            yanked.yanked += 1;
            yanked.reason.clone_from(reason);
        }
    }
    for (version, VersionYanks { files, yanked, reason, there }) in versions {
        let line = ReportLine::of("state", project).version(&version);
        let (state, reason) = match yanked {
            0 => ("", String::new()),
            some if some < files => {
                let why = format!(
                    "{some} of {files} files are yanked at the source, but the target can only yank whole versions"
                );
                run.report.add(line.ended(MoveOutcome::Skipped, why));
                continue;
            }
            _ => ("yanked", one_line(&reason)),
        };
        let expected = (!state.is_empty()).then(|| reason.clone());
        if there == expected {
            continue;
        }
        let line = ReportLine { state: Some(state.to_owned()), reason: Some(reason.clone()), ..line };
        let marked = server.mark(project, &version, state, &reason).await;
        run.ended(line, marked.map(|()| MoveOutcome::Moved))?;
    }
    Ok(())
}

/// Turns a reason into one line of at most 1,000 characters, because the target accepts only one
/// line.
fn one_line(text: &str) -> String {
    text.chars().map(|symbol| if symbol.is_control() { ' ' } else { symbol }).take(1000).collect()
}

/// The version in the address of a file on a Packhouse server.
fn version_of(file: &PyFile) -> Option<String> {
    let path = match &file.origin {
        Origin::Url(_, url) => url.path().to_owned(),
        Origin::Other(_) | Origin::File(_) => return None,
    };
    let mut segments = path.rsplit('/');
    segments.next()?;
    segments.next().map(percent::decode)
}

/// Sets the status of a project (PEP 792) to that of the source.
async fn status(
    run: &MoveRun,
    server: &Server,
    project: &str,
    status: Option<&Value>,
) -> Result<(), MoveError> {
    let word = |status: &Value| status.get("status").and_then(Value::as_str).unwrap_or("active").to_owned();
    let Some(status) = status.filter(|status| word(status) != "active") else { return Ok(()) };
    let url = server.url(&format!("projects/{}/status", percent::segment(project)))?;
    let there = server.client.json(&url).await?;
    if word(&there) == word(status) {
        return Ok(());
    }
    let mut body = json!({"status": word(status)});
    if let (Some(reason), Some(object)) = (status.get("reason"), body.as_object_mut()) {
        object.insert("reason".to_owned(), reason.clone());
    }
    let line = ReportLine { state: Some(word(status)), ..ReportLine::of("state", project) };
    let put = || {
        server
            .client
            .request(Method::PUT, &url)
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string())
    };
    run.ended(line, ask(put).await.map(|_| MoveOutcome::Moved))
}

/// Moves one file into a folder. Returns true if the folder then has the file.
async fn save(run: &MoveRun, folder: &Folder, project: &str, file: &PyFile) -> Result<bool, MoveError> {
    let path = format!("simple/{project}/{}", file.filename);
    let mut line = ReportLine::file(project, &path);
    line.version = filename::read(&file.filename, project).map(|(_, version)| version);
    if let Some(reason) = &file.yanked {
        line.state = Some("yanked".to_owned());
        line.reason = Some(reason.clone()).filter(|reason| !reason.is_empty());
    }
    let mut parcel = parcel(line, file);
    let result = store(folder, &path, &mut parcel, file).await;
    let saved = result.is_ok();
    run.ended(parcel.line, result)?;
    Ok(saved)
}

async fn store(
    folder: &Folder,
    path: &str,
    parcel: &mut Parcel,
    file: &PyFile,
) -> Result<MoveOutcome, MoveError> {
    let held = match parcel.stated.is_empty() {
        true => None,
        false => folder.holds(path, &parcel.stated).await?,
    };
    let (measured, outcome) = match held {
        Some(measured) => (measured, MoveOutcome::Present),
        None => {
            let mut opened = parcel.origin.open().await?;
            opened.modified = parcel.published.or(opened.modified);
            (folder.take(path, opened, parcel.stated.clone(), parcel.size).await?, MoveOutcome::Moved)
        }
    };
    let sidecars = form::Sidecars::read(file).await?;
    if let Some(signature) = &sidecars.signature {
        folder.put(&format!("{path}.asc"), signature.clone()).await?;
    }
    if let Some(provenance) = &sidecars.provenance {
        folder.put(&format!("{path}.provenance"), provenance.clone()).await?;
    }
    parcel.line.sha256 = measured.sha256();
    parcel.line.size = Some(measured.size);
    Ok(outcome)
}
