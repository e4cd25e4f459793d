//! Certificates from files. They are checked before anything listens and again every few seconds,
//! so that a changed file is served without a restart. An unusable certificate does not replace the
//! current one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use packhouse_config::Config;
use packhouse_config::tls::{CertificateFiles, TlsSettings};
use packhouse_wire::tls::{Certificate, CertificateError, Challenges, Tls, read_pem};
use tokio::sync::Mutex;

use packhouse_app::jobs::{Job, Next};
use packhouse_app::{App, Secured};

/// How often the files are read. A changed file is served well within ten seconds.
const LOOK: Duration = Duration::from_secs(3);

/// The last known contents of one host's certificate files.
struct WatchedFiles {
    host: &'static str,
    files: Vec<CertificateFiles>,
    /// The bytes that were checked last, of each certificate and its key.
    checked: Vec<[Vec<u8>; 2]>,
}

/// Prepares TLS for the hosts that use it, with the certificates from files. The error names the
/// setting, the file and a remedy.
pub(super) fn prepare(app: &App) -> anyhow::Result<()> {
    let config = &app.config;
    let host = |files: &[CertificateFiles], setting: &str| -> anyhow::Result<Option<Arc<Tls>>> {
        if files.is_empty() && config.tls.acme.is_none() {
            return Ok(None);
        }
        let proofs = Arc::clone(&app.proofs) as Arc<dyn Challenges>;
        let tls = Tls::new(Some(proofs)).context("failed to prepare TLS")?;
        tls.serve(load(config, files, setting)?);
        Ok(Some(Arc::new(tls)))
    };
    let secured =
        Secured { packages: host(&config.tls.packages, "packages")?, api: host(&config.tls.api, "api")? };
    // Cannot fail: this is the only place that sets it.
    let _ = app.tls.set(secured);
    Ok(())
}

/// Loads and checks the certificates of one host.
pub(crate) fn load(
    config: &Config,
    files: &[CertificateFiles],
    host: &str,
) -> anyhow::Result<Vec<Certificate>> {
    files
        .iter()
        .map(|files| Certificate::load(files).map_err(|error| describe(config, host, &error)))
        .collect()
}

/// Describes an error with the setting that names the file and where that setting was made.
fn describe(config: &Config, host: &str, error: &CertificateError) -> anyhow::Error {
    let of_key = match error {
        CertificateError::Unreadable { file, .. } => is_key(config, file),
        CertificateError::NoKey(_) | CertificateError::Mismatch { .. } => true,
        CertificateError::NoCertificate(_) => false,
        CertificateError::Unusable { place, .. } => is_key(config, Path::new(place)),
    };
    let own = if of_key { format!("tls.{host}_key") } else { format!("tls.{host}_cert") };
    let common = if of_key { "tls.key" } else { "tls.cert" };
    let name = if config.sources.of(&own) == "default" { common } else { own.as_str() };
    anyhow!(
        "{name} = {} ({}): {error}; set it to the PEM file of {}",
        config.sources.public_text(name),
        config.sources.of(name),
        if of_key { "the certificate's own private key" } else { "the certificate, followed by its issuers" }
    )
}

fn is_key(config: &Config, file: &Path) -> bool {
    let TlsSettings { packages, api, .. } = &config.tls;
    packages.iter().chain(api).any(|files| files.key == file)
}

/// The job that reads the files and serves changed certificates.
pub(super) fn job(app: &Arc<App>) -> Job {
    let none = |host| WatchedFiles { host, files: Vec::new(), checked: Vec::new() };
    let watched = Arc::new(Mutex::new([none("packages"), none("api")]));
    let reloads = Arc::new(Mutex::new(app.reloads()));
    let app = Arc::clone(app);
    let job = Job::with_state("reload-certificates", LOOK, move || {
        let (app, watched) = (Arc::clone(&app), Arc::clone(&watched));
        Box::pin(async move {
            let [packages, api] = &mut *watched.lock().await;
            let settings = app.live.read.get();
            let secured = app.secured();
            for (watched, files, tls) in [
                (packages, &settings.tls.packages, &secured.packages),
                (api, &settings.tls.api, &secured.api),
            ] {
                if let Some(tls) = tls
                    && !files.is_empty()
                {
                    watched.look(&app, files.clone(), tls).await;
                }
            }
            Ok(Next::AfterPeriod)
        })
    });
    job.after_period().woken_by(move || {
        let reloads = Arc::clone(&reloads);
        Box::pin(async move { reloads.lock().await.next().await })
    })
}

impl WatchedFiles {
    async fn look(&mut self, app: &App, files: Vec<CertificateFiles>, tls: &Tls) {
        let read = {
            let files = files.clone();
            tokio::task::spawn_blocking(move || read(&files)).await
        };
        let bytes = match read {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => return self.report_problem(app, &error.to_string()),
            Err(error) => return self.report_problem(app, &error.to_string()),
        };
        if self.files == files && self.checked == bytes {
            return;
        }
        let first = self.checked.is_empty();
        let judged: Result<Vec<Certificate>, CertificateError> = files
            .iter()
            .zip(&bytes)
            .map(|(files, [chain, key])| {
                let places = [&files.cert, &files.key].map(|path| path.display().to_string());
                Certificate::from_pem(chain, key, places.each_ref().map(String::as_str))
            })
            .collect();
        (self.files, self.checked) = (files, bytes);
        match judged {
            Ok(certificates) => {
                let names: Vec<&str> =
                    certificates.iter().flat_map(Certificate::names).map(String::as_str).collect();
                if !first {
                    tracing::info!(host = self.host, names = names.join(", "), "certificate replaced");
                }
                tls.serve(certificates);
                app.certificates.note(self.host, None);
            }
            // A certificate and its key are two files: while they are being replaced, they do not
            // match.
            Err(error) => self.report_problem(app, &error.to_string()),
        }
    }

    fn report_problem(&self, app: &App, why: &str) {
        app.certificates.note(self.host, Some(format!("the previous certificate is still served: {why}")));
    }
}

fn read(files: &[CertificateFiles]) -> Result<Vec<[Vec<u8>; 2]>, CertificateError> {
    let one = |file: &Path| {
        read_pem(file).map_err(|source| CertificateError::Unreadable { file: file.to_owned(), source })
    };
    files.iter().map(|files| Ok([one(&files.cert)?, one(&files.key)?])).collect()
}
