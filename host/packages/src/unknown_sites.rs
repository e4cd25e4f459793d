//! Sites that the server does not know, but for which it caches responses. Without a configured
//! public URL, links begin with the host that the client sends. All unknown sites share a few slots
//! in the cache, so a client that invents hosts does not displace the responses for known sites.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of unknown sites that have a slot.
const MAX_SITES: usize = 4;
/// Time without a request after which a site loses its slot.
const IDLE: Duration = Duration::from_secs(60);

/// The sites that have a slot, each with the time of its last request.
#[derive(Default)]
pub(crate) struct UnknownSites(Mutex<Vec<(String, Instant)>>);

impl UnknownSites {
    /// Reports whether responses are cached for the site of this URL.
    pub(crate) fn admit(&self, address: &str) -> bool {
        self.admit_at(site(address), Instant::now())
    }

    fn admit_at(&self, site: &str, now: Instant) -> bool {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, last)) = places.iter_mut().find(|(holder, _)| holder == site) {
            *last = now;
            return true;
        }
        places.retain(|(_, last)| now.saturating_duration_since(*last) < IDLE);
        let admitted = places.len() < MAX_SITES;
        if admitted {
            places.push((site.to_owned(), now));
        }
        admitted
    }
}

/// Returns scheme, host and port of a URL.
fn site(address: &str) -> &str {
    let host = address.find("://").map_or(0, |at| at + 3);
    let end = address.get(host..).and_then(|rest| rest.find('/')).map_or(address.len(), |end| host + end);
    address.get(..end).unwrap_or(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_keeps_its_place_while_it_is_requested() {
        let (sites, start) = (UnknownSites::default(), Instant::now());
        let known: Vec<String> = (0..MAX_SITES).map(|number| format!("http://{number}.example")).collect();
        assert!(known.iter().all(|site| sites.admit_at(site, start)));
        let invented = (0..1000).any(|number| sites.admit_at(&format!("http://{number}.evil"), start));
        assert!(!invented);
        let later = start + IDLE / 2;
        assert!(sites.admit_at(&known[0], later));
        assert!(
            sites.admit_at("http://b.example", start + IDLE),
            "the other sites were not requested in the meantime"
        );
        assert!(sites.admit_at(&known[0], start + IDLE));
    }

    #[test]
    fn a_site_is_the_beginning_of_an_address() {
        assert_eq!(site("https://a.example:8443/repositories/r"), "https://a.example:8443");
        assert_eq!(site("http://a.example"), "http://a.example");
    }
}
