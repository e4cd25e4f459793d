//! For which sites answers are kept while links follow the host that a client names: for few at a time, so that whoever makes up names
//! displaces nothing that others ask for.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Sites at one time.
const MOST: usize = 16;
/// After this time without a request a site's place is another's.
const IDLE: Duration = Duration::from_secs(60);

/// The sites, each with when it was asked last.
#[derive(Default)]
pub(crate) struct KeptSites(Mutex<Vec<(String, Instant)>>);

impl KeptSites {
    /// Whether answers are kept for the site of this address.
    pub(crate) fn keep(&self, address: &str) -> bool {
        self.keep_at(site(address), Instant::now())
    }

    fn keep_at(&self, site: &str, now: Instant) -> bool {
        let mut sites = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, last)) = sites.iter_mut().find(|(known, _)| known == site) {
            *last = now;
            return true;
        }
        sites.retain(|(_, last)| now.saturating_duration_since(*last) < IDLE);
        let has_room = sites.len() < MOST;
        if has_room {
            sites.push((site.to_owned(), now));
        }
        has_room
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
    fn names_that_are_made_up_take_no_place_from_those_that_are_asked() {
        let (sites, start) = (KeptSites::default(), Instant::now());
        assert!(sites.keep_at("http://a.example", start));
        let made_up =
            (0..1000).filter(|number| sites.keep_at(&format!("http://{number}.evil"), start)).count();
        assert_eq!(made_up, MOST - 1);
        assert!(sites.keep_at("http://a.example", start + IDLE / 2));
        let later = start + IDLE;
        assert!(sites.keep_at("http://b.example", later), "those that nobody asks lose their place");
        assert!(sites.keep_at("http://a.example", later));
    }

    #[test]
    fn a_site_is_the_beginning_of_an_address() {
        assert_eq!(site("https://a.example:8443/repositories/r"), "https://a.example:8443");
        assert_eq!(site("http://a.example"), "http://a.example");
    }
}
