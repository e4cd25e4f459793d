//! Checks that certificates can be served, have not expired, and are valid for the hosts that
//! clients use.

use packhouse_app::certificates::time_left;
use packhouse_config::Config;
use packhouse_config::tls::{AcmeSettings, CertificateFiles};
use packhouse_identity::Sealer;
use packhouse_store::{Store, now_ms};
use packhouse_wire::tls::{Certificate, read_pem};
use rustls::pki_types::ServerName;
use url::Url;

use super::Findings;
use crate::serve::{AcmeStore, certificates};

/// Checks certificate files, and ordered certificates if the database schema is current.
pub(super) async fn examine(config: &Config, current: bool, findings: &mut Findings) {
    let tls = &config.tls;
    files(config, &tls.packages, "packages", config.base_url.as_ref(), findings);
    files(config, &tls.api, "api", config.api_url.as_ref(), findings);
    let Some(acme) = &tls.acme else { return };
    if let Some(ca) = &acme.ca
        && let Err(error) = read_pem(ca)
    {
        let label = config.sources.label("tls.acme.ca");
        findings.wrong(format!(
            "{label} cannot be read: {error}; set it to the PEM file of the ACME directory's certificate authority"
        ));
    }
    if current {
        ordered(config, acme, findings).await;
    } else {
        findings.note("certificates: the first start will order one");
    }
}

fn files(
    config: &Config,
    files: &[CertificateFiles],
    host: &str,
    url: Option<&Url>,
    findings: &mut Findings,
) {
    if files.is_empty() {
        return;
    }
    let before = findings.faults();
    let loaded = match certificates::load(config, files, host) {
        Ok(loaded) => loaded,
        Err(error) => return findings.wrong(error.to_string()),
    };
    for certificate in &loaded {
        if let Some(problem) = time_left(certificate, now_ms()) {
            findings.wrong(format!("{}: {problem}", config.sources.label("tls.cert")));
        }
    }
    if let Some(name) = url.and_then(Url::host_str)
        && let Ok(server) = ServerName::try_from(name.trim_matches(['[', ']']))
        && !loaded.iter().any(|certificate| certificate.is_for(&server))
    {
        let names = loaded.iter().flat_map(Certificate::names).cloned().collect::<Vec<_>>().join(", ");
        findings.wrong(format!(
            "no certificate of the {host} host is valid for {name}, the name that clients use: they are for {names}; get a certificate for that name"
        ));
    }
    findings.ok_unless(before, format!("certificates of the {host} host: usable and not expired"));
}

async fn ordered(config: &Config, settings: &AcmeSettings, findings: &mut Findings) {
    let store = match Store::open(config.store.clone()).await {
        Ok(store) => store,
        Err(error) => {
            return findings.wrong(format!("certificates: the database cannot be read: {}", error.reason()));
        }
    };
    let (acme_store, sealer) =
        (AcmeStore::new(settings), Sealer::new(config.sealing_key.clone(), &config.data));
    match acme_store
        .certificate(&store, &sealer)
        .await
        .map(|stored| stored.map(|stored| stored.certificate()))
    {
        Ok(Some(Ok(certificate))) => match time_left(&certificate, now_ms()) {
            Some(problem) => findings.wrong(format!("certificates: {problem}")),
            None => findings.ok(format!(
                "certificates: the ordered certificate for {} is valid",
                certificate.names().join(", ")
            )),
        },
        Ok(Some(Err(error))) => findings.wrong(format!("certificates: {error}")),
        Ok(None) => findings.note("certificates: none has been ordered yet; a running server orders one"),
        Err(error) => findings.wrong(format!("certificates: {error:#}")),
    }
    if let Ok(Some(failure)) = acme_store.failure(&store, &sealer).await {
        findings.wrong(format!("{}: {}", config.sources.label("tls.acme.directory"), failure.sentence()));
    }
    store.close().await;
}
