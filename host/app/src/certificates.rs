//! Findings about certificates: when the served certificates expire, and why a replacement is not
//! served yet.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use packhouse_wire::tls::{Certificate, Tls};

use crate::Secured;
use crate::readiness::{CERTIFICATE, Finding};

/// Maximum time before its expiry at which a certificate is reported, in ms. A certificate that is
/// renewed in time never gets this close.
const SOON_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Divisor for short-lived certificates. The server reports them during the last fifth of their
/// lifetime.
const SOON_SHARE: i64 = 5;

/// Problems with certificates that the server does not serve yet, by the purpose of the
/// certificate.
#[derive(Default)]
pub struct CertificateProblems(Mutex<BTreeMap<&'static str, String>>);

impl CertificateProblems {
    /// Sets the problem for one purpose. `None` clears it.
    pub fn note(&self, what: &'static str, problem: Option<String>) {
        let mut problems = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match problem {
            Some(problem) => problems.insert(what, problem),
            None => problems.remove(what),
        };
    }

    /// Returns all problems, including those that the served certificates have at `now`, in ms
    /// since 1970.
    pub fn findings(&self, secured: &Secured, now: i64) -> Vec<Finding> {
        let finding = |which: &str, detail: String| Finding {
            what: CERTIFICATE,
            which: which.to_owned(),
            detail,
            cause: String::new(),
        };
        let problems = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded = problems.iter().map(|(what, problem)| finding(what, problem.clone()));
        let hosts = [("packages", &secured.packages), ("api", &secured.api)];
        let served = hosts.into_iter().filter_map(|(host, tls)| Some((host, tls.as_deref()?)));
        let served_problems = served.flat_map(|(host, tls)| {
            judge(host, tls, now).into_iter().map(move |(which, detail)| (format!("{host} {which}"), detail))
        });
        recorded.chain(served_problems.map(|(which, detail)| finding(&which, detail))).collect()
    }
}

fn judge(host: &str, tls: &Tls, now: i64) -> Vec<(String, String)> {
    let served = tls.served();
    if served.is_empty() {
        let none = format!("the {host} host has no certificate yet, so clients cannot connect to it");
        return vec![("none".to_owned(), none)];
    }
    served
        .iter()
        .filter_map(|certificate| Some((certificate.names().join(" "), time_left(certificate, now)?)))
        .collect()
}

/// Returns a warning if the certificate is not valid yet, has expired or expires soon, and `None`
/// otherwise.
pub fn time_left(certificate: &Certificate, now: i64) -> Option<String> {
    let names = certificate.names().join(", ");
    let (begins, ends) = (certificate.begins(), certificate.ends());
    let soon = SOON_MS.min(ends.saturating_sub(begins) / SOON_SHARE);
    let hours = ends.saturating_sub(now) / (60 * 60 * 1000);
    if now < begins {
        Some(format!("the certificate of {names} is not valid yet: check this machine's clock"))
    } else if now >= ends {
        Some(format!(
            "the certificate of {names} expired {} hours ago: clients do not trust it; replace it",
            -hours
        ))
    } else if ends.saturating_sub(now) < soon {
        Some(format!("the certificate of {names} expires in {hours} hours: replace it"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    const DAY_MS: i64 = 24 * 60 * 60 * 1000;

    /// Returns a certificate that is valid during 2030.
    fn certificate() -> Certificate {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2030, 1, 1), date_time_ymd(2031, 1, 1));
        let made = params.self_signed(&key).unwrap();
        Certificate::from_pem(made.pem().as_bytes(), key.serialize_pem().as_bytes(), ["a", "b"]).unwrap()
    }

    #[test]
    fn an_expiring_certificate_is_reported_in_time() {
        let certificate = certificate();
        let warning = |now: i64| time_left(&certificate, now).unwrap_or_default();
        assert!(warning(certificate.begins() - 1).contains("is not valid yet"));
        assert!(warning(certificate.begins() + DAY_MS).is_empty());
        assert!(warning(certificate.ends() - 8 * DAY_MS).is_empty());
        assert!(warning(certificate.ends() - 6 * DAY_MS).contains("expires in 144 hours"));
        assert!(warning(certificate.ends() + DAY_MS).contains("expired 24 hours ago"));
    }

    #[test]
    fn a_listener_without_a_certificate_is_a_finding() {
        let tls = std::sync::Arc::new(Tls::new(None).unwrap());
        let secured = Secured { packages: Some(tls.clone()), api: None };
        let problems = CertificateProblems::default();
        let details = |now| -> Vec<String> {
            problems.findings(&secured, now).into_iter().map(|finding| finding.detail).collect()
        };
        assert!(details(0)[0].contains("the packages host has no certificate"));
        tls.serve(vec![certificate()]);
        assert!(details(certificate().begins() + DAY_MS).is_empty());
        problems.note("acme", Some("refused".to_owned()));
        assert_eq!(details(certificate().begins() + DAY_MS), ["refused"]);
        problems.note("acme", None);
        assert!(details(certificate().begins() + DAY_MS).is_empty());
    }
}
