//! For which site that the server does not know answers are kept, while links follow the host that a client names. All such sites share
//! one place, so a client that makes up hosts pushes out no answers at the sites that the server knows.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// After this time without a request to its site the place is another's.
const IDLE: Duration = Duration::from_secs(60);

/// The site that has the place, and when it was last requested.
#[derive(Default)]
pub(crate) struct UnknownSites(Mutex<Option<(String, Instant)>>);

impl UnknownSites {
    /// Whether answers are kept for the site of this address.
    pub(crate) fn keep(&self, address: &str) -> bool {
        self.keep_at(site(address), Instant::now())
    }

    fn keep_at(&self, site: &str, now: Instant) -> bool {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let may_have_it = |(holder, last): &(String, Instant)| {
            holder == site || now.saturating_duration_since(*last) >= IDLE
        };
        let keeps = place.as_ref().is_none_or(may_have_it);
        if keeps {
            *place = Some((site.to_owned(), now));
        }
        keeps
    }
}

/// Scheme, name and port of an address.
fn site(address: &str) -> &str {
    let host = address.find("://").map_or(0, |at| at + 3);
    let end = address.get(host..).and_then(|rest| rest.find('/')).map_or(address.len(), |end| host + end);
    address.get(..end).unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_site_has_the_place_until_nobody_requests_it() {
        let (sites, start) = (UnknownSites::default(), Instant::now());
        assert!(sites.keep_at("http://a.example", start));
        let made_up = (0..1000).any(|number| sites.keep_at(&format!("http://{number}.evil"), start));
        assert!(!made_up);
        let later = start + IDLE / 2;
        assert!(sites.keep_at("http://a.example", later));
        assert!(!sites.keep_at("http://b.example", start + IDLE), "the first was requested meanwhile");
        assert!(sites.keep_at("http://b.example", later + IDLE));
        assert!(!sites.keep_at("http://a.example", later + IDLE));
    }

    #[test]
    fn a_site_is_the_beginning_of_an_address() {
        assert_eq!(site("https://a.example:8443/repositories/r"), "https://a.example:8443");
        assert_eq!(site("http://a.example"), "http://a.example");
    }
}
