//! What is known of the certificates that are served: when they end, and what is amiss with those that were to take their place.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use packhouse_wire::tls::{Certificate, Tls};

use crate::Secured;
use crate::readiness::{CERTIFICATE, Finding};

/// How long before its end a certificate is told of, at most: one that is renewed in time never comes to this.
const SOON_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Of shorter ones, this part of their time.
const SOON_SHARE: i64 = 5;

/// What is amiss with certificates that are not served yet, by what they are for.
#[derive(Default)]
pub struct CertificateProblems(Mutex<BTreeMap<&'static str, String>>);

impl CertificateProblems {
    /// Notes a sentence for one thing, or with none that it is well.
    pub fn note(&self, what: &'static str, problem: Option<String>) {
        let mut problems = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match problem {
            Some(problem) => problems.insert(what, problem),
            None => problems.remove(what),
        };
    }

    /// All that is amiss, with what the served certificates show at this time, in ms since 1970.
    pub fn findings(&self, secured: &Secured, now: i64) -> Vec<Finding> {
        let finding = |which: &str, detail: String| Finding {
            what: CERTIFICATE,
            which: which.to_owned(),
            detail,
            cause: String::new(),
        };
        let problems = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = problems.iter().map(|(what, problem)| finding(what, problem.clone()));
        let hosts = [("packages", &secured.packages), ("api", &secured.api)];
        let served = hosts.into_iter().filter_map(|(host, tls)| Some((host, tls.as_deref()?)));
        let shown = served.flat_map(|(host, tls)| {
            judge(host, tls, now).into_iter().map(move |(which, detail)| (format!("{host} {which}"), detail))
        });
        noted.chain(shown.map(|(which, detail)| finding(&which, detail))).collect()
    }
}

fn judge(host: &str, tls: &Tls, now: i64) -> Vec<(String, String)> {
    let served = tls.served();
    if served.is_empty() {
        let none = format!("there is no certificate for the {host} host yet, and nobody can connect to it");
        return vec![("none".to_owned(), none)];
    }
    served
        .iter()
        .filter_map(|certificate| Some((certificate.names().join(" "), time_left(certificate, now)?)))
        .collect()
}

/// What is to be said of the time that a certificate has left; none where that is enough.
pub fn time_left(certificate: &Certificate, now: i64) -> Option<String> {
    let names = certificate.names().join(", ");
    let (begins, ends) = (certificate.begins(), certificate.ends());
    let soon = SOON_MS.min(ends.saturating_sub(begins) / SOON_SHARE);
    let hours = ends.saturating_sub(now) / (60 * 60 * 1000);
    if now < begins {
        Some(format!("the certificate of {names} does not hold yet: look at this machine's clock"))
    } else if now >= ends {
        Some(format!("the certificate of {names} has ended {} hours ago: no client trusts it", -hours))
    } else if ends.saturating_sub(now) < soon {
        Some(format!("the certificate of {names} ends in {hours} hours: put another in its place"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    const DAY_MS: i64 = 24 * 60 * 60 * 1000;

    /// A certificate of the year 2030.
    fn certificate() -> Certificate {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2030, 1, 1), date_time_ymd(2031, 1, 1));
        let made = params.self_signed(&key).unwrap();
        Certificate::from_pem(made.pem().as_bytes(), key.serialize_pem().as_bytes(), ["a", "b"]).unwrap()
    }

    #[test]
    fn the_end_of_a_certificate_is_told_in_time() {
        let certificate = certificate();
        let told = |now: i64| time_left(&certificate, now).unwrap_or_default();
        assert!(told(certificate.begins() - 1).contains("does not hold yet"));
        assert!(told(certificate.begins() + DAY_MS).is_empty());
        assert!(told(certificate.ends() - 8 * DAY_MS).is_empty());
        assert!(told(certificate.ends() - 6 * DAY_MS).contains("ends in 144 hours"));
        assert!(told(certificate.ends() + DAY_MS).contains("has ended 24 hours ago"));
    }

    #[test]
    fn a_listener_without_a_certificate_is_a_finding() {
        let tls = std::sync::Arc::new(Tls::new(None).unwrap());
        let secured = Secured { packages: Some(tls.clone()), api: None };
        let problems = CertificateProblems::default();
        let details = |now| -> Vec<String> {
            problems.findings(&secured, now).into_iter().map(|finding| finding.detail).collect()
        };
        assert!(details(0)[0].contains("there is no certificate for the packages host"));
        tls.serve(vec![certificate()]);
        assert!(details(certificate().begins() + DAY_MS).is_empty());
        problems.note("acme", Some("refused".to_owned()));
        assert_eq!(details(certificate().begins() + DAY_MS), ["refused"]);
        problems.note("acme", None);
        assert!(details(certificate().begins() + DAY_MS).is_empty());
    }
}
