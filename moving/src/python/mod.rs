//! Python projects: from a simple index (PEP 503, 691, 700, 592) to one, by the upload form, or into a folder that is one.

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
use crate::fault::Fault;
use crate::folder::Folder;
use crate::origin::Origin;
use crate::percent;
use crate::place::Place;
use crate::report::{Line, Outcome};
use crate::server::Server;
use crate::stream::measure;
use crate::target::{Parcel, Run, Target, ask, published, sized};

use filename::normalized;
use form::Form;
pub(crate) use simple::{PyFile, Simple};

/// What a version's files say together of whether they are yanked.
#[derive(Default)]
struct Yanked {
    files: usize,
    yanked: usize,
    reason: String,
    /// The same of the target.
    there: Option<String>,
}

/// Moves the projects of an index; all where none are named.
pub(crate) async fn run(run: &Run, source: Simple, names: Option<Vec<String>>) -> Result<(), Fault> {
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
            fault => run.ended(Line::of("package", name), fault.map(|()| Outcome::Present)),
        }
    })
    .await?;
    match &run.target {
        Target::Folder(folder) => folder::root(folder, &names).await,
        Target::Server(_) => Ok(()),
    }
}

async fn project(run: &Run, source: &Simple, name: &str) -> Result<(), Fault> {
    let mut listing = source.project(name).await?;
    // The newest first: a version came into the world with the oldest of its files, and what was said last holds.
    listing.files.sort_by(|one, other| (other.uploaded, &other.filename).cmp(&(one.uploaded, &one.filename)));
    match &run.target {
        Target::Server(server) => {
            let there = Simple::below(Place::Server(server.client.clone())).project(name).await;
            let there = match there {
                Err(Fault::Missing(_)) => Vec::new(),
                there => there?.files,
            };
            for file in &listing.files {
                upload(run, server, name, file, &there).await?;
            }
            states(run, server, name, &listing.files).await?;
            status(run, server, name, listing.status.as_ref()).await
        }
        Target::Folder(folder) => {
            let mut kept = Vec::new();
            for file in &listing.files {
                if save(run, folder, name, file).await? {
                    kept.push(file.clone());
                }
            }
            folder::project(folder, name, &kept, listing.status.as_ref()).await
        }
    }
}

fn parcel(line: Line, file: &PyFile) -> Parcel {
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
    run: &Run,
    server: &Server,
    project: &str,
    file: &PyFile,
    there: &[PyFile],
) -> Result<(), Fault> {
    let mut line = Line::file(project, &file.filename);
    let (filetype, version) = filename::read(&file.filename, project).unzip();
    if version.is_none() && !server.manages {
        let why = "it is no wheel and no source distribution of this project, and only a member with manage-repositories can move others";
        run.report.add(line.ended(Outcome::Skipped, why));
        return Ok(());
    }
    line.version.clone_from(&version);
    let mut parcel = parcel(line, file);
    let result = match there.iter().find(|known| known.filename == file.filename) {
        Some(known) => compare(&mut parcel, known).await,
        None => {
            let form = Form { project, filetype, version: version.as_deref(), file };
            send(run, server, &mut parcel, file, form).await
        }
    };
    run.ended(parcel.line, result)
}

async fn compare(parcel: &mut Parcel, there: &PyFile) -> Result<Outcome, Fault> {
    let same = match parcel.stated.agree(&there.hashes) {
        Some(same) => same,
        None => {
            let came = measure(parcel.origin.open().await?, parcel.stated.clone(), parcel.size).await?;
            came.digests.agree(&there.hashes).unwrap_or(false)
        }
    };
    parcel.line.sha256 = there.hashes.sha256.clone();
    parcel.line.size = there.size;
    if same {
        Ok(Outcome::Present)
    } else {
        Err(Fault::Refused("another file of this name is there, and it is not replaced".to_owned()))
    }
}

async fn send(
    run: &Run,
    server: &Server,
    parcel: &mut Parcel,
    file: &PyFile,
    form: Form<'_>,
) -> Result<Outcome, Fault> {
    let beside = form::Beside::read(file).await?;
    let (before, after) = form.around(&beside);
    let url = server.url("")?;
    let came = run
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
    parcel.line.sha256 = came.sha256();
    parcel.line.size = Some(came.size);
    Ok(Outcome::Moved)
}

/// Yanks what the source has yanked, and takes back what it has not: of whole versions.
async fn states(run: &Run, server: &Server, project: &str, files: &[PyFile]) -> Result<(), Fault> {
    let there = match Simple::below(Place::Server(server.client.clone())).project(project).await {
        Err(Fault::Missing(_)) => return Ok(()),
        there => there?.files,
    };
    let mut versions: BTreeMap<String, Yanked> = BTreeMap::new();
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
    for (version, Yanked { files, yanked, reason, there }) in versions {
        let line = Line::of("state", project).version(&version);
        let (state, reason) = match yanked {
            0 => ("", String::new()),
            some if some < files => {
                let why = format!(
                    "{some} of {files} files are yanked at the source, and here a version is yanked as a whole"
                );
                run.report.add(line.ended(Outcome::Skipped, why));
                continue;
            }
            _ => ("yanked", one_line(&reason)),
        };
        let wanted = (!state.is_empty()).then(|| reason.clone());
        if there == wanted {
            continue;
        }
        let line = Line { state: Some(state.to_owned()), reason: Some(reason.clone()), ..line };
        let marked = server.mark(project, &version, state, &reason).await;
        run.ended(line, marked.map(|()| Outcome::Moved))?;
    }
    Ok(())
}

/// As a reason may be: one line.
fn one_line(text: &str) -> String {
    text.chars().map(|symbol| if symbol.is_control() { ' ' } else { symbol }).take(1000).collect()
}

/// The version in the address of a file of our server's.
fn version_of(file: &PyFile) -> Option<String> {
    let path = match &file.origin {
        Origin::Url(_, url) => url.path().to_owned(),
        Origin::Other(_) | Origin::File(_) => return None,
    };
    let mut segments = path.rsplit('/');
    segments.next()?;
    segments.next().map(percent::decode)
}

/// PEP 792: what the project says of itself as a whole.
async fn status(run: &Run, server: &Server, project: &str, status: Option<&Value>) -> Result<(), Fault> {
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
    let line = Line { state: Some(word(status)), ..Line::of("state", project) };
    let put = || {
        server
            .client
            .request(Method::PUT, &url)
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string())
    };
    run.ended(line, ask(put).await.map(|_| Outcome::Moved))
}

/// Moves one file into a folder; whether it is there then.
async fn save(run: &Run, folder: &Folder, project: &str, file: &PyFile) -> Result<bool, Fault> {
    let path = format!("simple/{project}/{}", file.filename);
    let mut line = Line::file(project, &path);
    line.version = filename::read(&file.filename, project).map(|(_, version)| version);
    if let Some(reason) = &file.yanked {
        line.state = Some("yanked".to_owned());
        line.reason = Some(reason.clone()).filter(|reason| !reason.is_empty());
    }
    let mut parcel = parcel(line, file);
    let result = keep(folder, &path, &mut parcel, file).await;
    let kept = result.is_ok();
    run.ended(parcel.line, result)?;
    Ok(kept)
}

async fn keep(folder: &Folder, path: &str, parcel: &mut Parcel, file: &PyFile) -> Result<Outcome, Fault> {
    let held = match parcel.stated.is_empty() {
        true => None,
        false => folder.holds(path, &parcel.stated).await?,
    };
    let (came, outcome) = match held {
        Some(came) => (came, Outcome::Present),
        None => {
            let mut opened = parcel.origin.open().await?;
            opened.modified = parcel.published.or(opened.modified);
            (folder.take(path, opened, parcel.stated.clone(), parcel.size).await?, Outcome::Moved)
        }
    };
    let beside = form::Beside::read(file).await?;
    if let Some(signature) = &beside.signature {
        folder.put(&format!("{path}.asc"), signature.clone()).await?;
    }
    if let Some(provenance) = &beside.provenance {
        folder.put(&format!("{path}.provenance"), provenance.clone()).await?;
    }
    parcel.line.sha256 = came.sha256();
    parcel.line.size = Some(came.size);
    Ok(outcome)
}
