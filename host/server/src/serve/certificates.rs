//! Certificates from files: checked before anything listens, and looked at again every few seconds, so that a changed file is served
//! without a restart. One that cannot be served takes nobody's place.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use packhouse_config::Config;
use packhouse_config::tls::{CertificateFiles, TlsSettings};
use packhouse_wire::tls::{Certificate, CertificateError, Challenges, Tls, read_pem};

use packhouse_app::{App, Secured};

/// How often the files are looked at: what is written is served well within ten seconds.
const LOOK: Duration = Duration::from_secs(3);

/// One host's certificates as its files had them.
struct Watched {
    host: &'static str,
    files: Vec<CertificateFiles>,
    /// The bytes that were judged last, of each certificate and its key.
    seen: Vec<[Vec<u8>; 2]>,
}

/// Makes TLS ready where it is to be spoken, with the certificates of the files. The error names setting, file and remedy.
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
    // Set once: this is the only place.
    let _ = app.tls.set(secured);
    Ok(())
}

/// The certificates of one host's files, each checked.
pub(crate) fn load(
    config: &Config,
    files: &[CertificateFiles],
    host: &str,
) -> anyhow::Result<Vec<Certificate>> {
    files.iter().map(|files| Certificate::load(files).map_err(|error| said(config, host, &error))).collect()
}

/// What is wrong, with the setting that names the file and where that stands.
fn said(config: &Config, host: &str, error: &CertificateError) -> anyhow::Error {
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
        "{name} = {} ({}): {error}; name the PEM file of {}",
        config.sources.shown(name),
        config.sources.of(name),
        if of_key {
            "the certificate's own private key"
        } else {
            "the certificate, followed by those that signed it"
        }
    )
}

fn is_key(config: &Config, file: &Path) -> bool {
    let TlsSettings { packages, api, .. } = &config.tls;
    packages.iter().chain(api).any(|files| files.key == file)
}

/// Looks at the files until the stop, and serves what they hold.
pub(super) async fn watch(app: Arc<App>) {
    let none = |host| Watched { host, files: Vec::new(), seen: Vec::new() };
    let [mut packages, mut api] = [none("packages"), none("api")];
    let mut reloads = app.reloads();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = reloads.next() => {}
            () = app.stop.cancelled() => return,
        }
        let settings = app.live.read.get();
        let secured = app.secured();
        for (watched, files, tls) in [
            (&mut packages, &settings.tls.packages, &secured.packages),
            (&mut api, &settings.tls.api, &secured.api),
        ] {
            if let Some(tls) = tls
                && !files.is_empty()
            {
                watched.look(&app, files.clone(), tls).await;
            }
        }
    }
}

impl Watched {
    async fn look(&mut self, app: &App, files: Vec<CertificateFiles>, tls: &Tls) {
        let read = {
            let files = files.clone();
            tokio::task::spawn_blocking(move || read(&files)).await
        };
        let bytes = match read {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => return self.amiss(app, &error.to_string()),
            Err(error) => return self.amiss(app, &error.to_string()),
        };
        if self.files == files && self.seen == bytes {
            return;
        }
        let first = self.seen.is_empty();
        let judged: Result<Vec<Certificate>, CertificateError> = files
            .iter()
            .zip(&bytes)
            .map(|(files, [chain, key])| {
                let places = [&files.cert, &files.key].map(|path| path.display().to_string());
                Certificate::from_pem(chain, key, places.each_ref().map(String::as_str))
            })
            .collect();
        (self.files, self.seen) = (files, bytes);
        match judged {
            Ok(certificates) => {
                let names: Vec<&str> =
                    certificates.iter().flat_map(Certificate::names).map(String::as_str).collect();
                if !first {
                    tracing::info!(
                        host = self.host,
                        names = names.join(", "),
                        "another certificate is served"
                    );
                }
                tls.serve(certificates);
                app.certificates.note(self.host, None);
            }
            // Certificate and key are two files: between the writing of one and of the other they do not fit.
            Err(error) => self.amiss(app, &error.to_string()),
        }
    }

    fn amiss(&self, app: &App, why: &str) {
        app.certificates
            .note(self.host, Some(format!("the certificate that was served before is served on: {why}")));
    }
}

fn read(files: &[CertificateFiles]) -> Result<Vec<[Vec<u8>; 2]>, CertificateError> {
    let one = |file: &Path| {
        read_pem(file).map_err(|source| CertificateError::Unreadable { file: file.to_owned(), source })
    };
    files.iter().map(|files| Ok([one(&files.cert)?, one(&files.key)?])).collect()
}
