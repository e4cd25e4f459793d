//! For which sites that the server does not know answers are kept, while links follow the host that a client names. All such sites share
//! a few places, so a client that makes up hosts pushes out no answers at the sites that the server knows.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Sites that have a place at one time.
const MOST: usize = 4;
/// After this time without a request to its site a place is another's.
const IDLE: Duration = Duration::from_secs(60);

/// The sites that have a place, and when each was last requested.
#[derive(Default)]
pub(crate) struct UnknownSites(Mutex<Vec<(String, Instant)>>);

impl UnknownSites {
    /// Whether answers are kept for the site of this address.
    pub(crate) fn keep(&self, address: &str) -> bool {
        self.keep_at(site(address), Instant::now())
    }

    fn keep_at(&self, site: &str, now: Instant) -> bool {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, last)) = places.iter_mut().find(|(holder, _)| holder == site) {
            *last = now;
            return true;
        }
        places.retain(|(_, last)| now.saturating_duration_since(*last) < IDLE);
        let keeps = places.len() < MOST;
        if keeps {
            places.push((site.to_owned(), now));
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
    fn a_site_has_its_place_until_nobody_requests_it() {
        let (sites, start) = (UnknownSites::default(), Instant::now());
        let known: Vec<String> = (0..MOST).map(|number| format!("http://{number}.example")).collect();
        assert!(known.iter().all(|site| sites.keep_at(site, start)));
        let made_up = (0..1000).any(|number| sites.keep_at(&format!("http://{number}.evil"), start));
        assert!(!made_up);
        let later = start + IDLE / 2;
        assert!(sites.keep_at(&known[0], later));
        assert!(sites.keep_at("http://b.example", start + IDLE), "the others were not requested meanwhile");
        assert!(sites.keep_at(&known[0], start + IDLE));
    }

    #[test]
    fn a_site_is_the_beginning_of_an_address() {
        assert_eq!(site("https://a.example:8443/repositories/r"), "https://a.example:8443");
        assert_eq!(site("http://a.example"), "http://a.example");
    }
}
