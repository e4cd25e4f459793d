//! Certificates: whether they can be served, how long they hold, and whether they are for the hosts that clients name.

use packhouse_app::certificates::time_left;
use packhouse_config::Config;
use packhouse_config::tls::{AcmeSettings, CertificateFiles};
use packhouse_identity::Sealer;
use packhouse_store::{Store, now_ms};
use packhouse_wire::tls::{Certificate, read_pem};
use rustls::pki_types::ServerName;
use url::Url;

use super::Findings;
use crate::serve::{Shelf, certificates};

/// Looks at those of files, and at what was ordered where the database is current.
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
            "{label} cannot be read: {error}; name the PEM file of the directory's authority"
        ));
    }
    if current {
        ordered(config, acme, findings).await;
    } else {
        findings.note("certificates: the first start orders one");
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
            "no certificate of the {host} host is for {name}, which clients name: they are for {names}; have one made for that name"
        ));
    }
    findings.well_unless(before, format!("certificates of the {host} host: they can be served, and hold"));
}

async fn ordered(config: &Config, settings: &AcmeSettings, findings: &mut Findings) {
    let store = match Store::open(config.store.clone()).await {
        Ok(store) => store,
        Err(error) => {
            return findings.wrong(format!("certificates: the database cannot be read: {}", error.reason()));
        }
    };
    let (shelf, sealer) = (Shelf::new(settings), Sealer::new(config.sealing_key.clone(), &config.data));
    match shelf.certificate(&store, &sealer).await.map(|kept| kept.map(|kept| kept.certificate())) {
        Ok(Some(Ok(certificate))) => match time_left(&certificate, now_ms()) {
            Some(problem) => findings.wrong(format!("certificates: {problem}")),
            None => findings.well(format!(
                "certificates: one for {} was ordered, and holds",
                certificate.names().join(", ")
            )),
        },
        Ok(Some(Err(error))) => findings.wrong(format!("certificates: {error}")),
        Ok(None) => findings.note("certificates: none was ordered yet; a running server orders one"),
        Err(error) => findings.wrong(format!("certificates: {error:#}")),
    }
    if let Ok(Some(failure)) = shelf.failure(&store, &sealer).await {
        findings.wrong(format!("{}: {}", config.sources.label("tls.acme.directory"), failure.sentence()));
    }
    store.close().await;
}
