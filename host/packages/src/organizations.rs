//! Which organization a request is for, by its host; and the public address that links start with.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use packhouse_store::{OrganizationId, OrganizationRow};

use crate::error_response::HttpError;
use crate::request_context::RequestContext;
use packhouse_app::App;
use packhouse_wire::catalogue;

/// How old the list may be: an organization that another process made is found within this time.
const FRESH: Duration = Duration::from_secs(1);

/// The organizations, read now and then: there are few, and they hardly change.
#[derive(Default)]
pub(crate) struct Organizations {
    read: Mutex<Option<(Instant, Arc<[OrganizationRow]>)>>,
}

impl Organizations {
    /// The step that finds the organization of this host, or the only one there is. From here on `context` knows what links start
    /// with. 401 where there is none of this host, 503 if the store cannot be read.
    pub(crate) async fn find(
        &self,
        app: &App,
        host: Option<&str>,
        context: &mut RequestContext,
    ) -> Result<OrganizationId, HttpError> {
        let all = self.all(app).await?;
        let found = match &*all {
            [only] => Some(only),
            several => host.and_then(|host| by_host(several, host)),
        };
        context.base_url = base_url(app, found, host);
        let organization = found.ok_or_else(|| HttpError::of(&catalogue::UNAUTHORIZED))?;
        context.organization = Some(organization.id);
        Ok(organization.id)
    }

    async fn all(&self, app: &App) -> Result<Arc<[OrganizationRow]>, HttpError> {
        if let Some(all) = self.fresh() {
            return Ok(all);
        }
        let all: Arc<[OrganizationRow]> = app.store.organizations().await?.into();
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), Arc::clone(&all)));
        Ok(all)
    }

    fn fresh(&self) -> Option<Arc<[OrganizationRow]>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.as_ref().filter(|(at, _)| at.elapsed() < FRESH).map(|(_, all)| Arc::clone(all))
    }
}

/// With its port, or without where the organization's address has none.
fn by_host<'a>(all: &'a [OrganizationRow], host: &str) -> Option<&'a OrganizationRow> {
    let of = |host: &str| all.iter().find(|row| row.host.as_deref() == Some(host));
    of(host).or_else(|| of(without_port(host)))
}

/// A host without its port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            // An IPv6 address without a port ends in its bracket.
            if name.contains(':') && !name.ends_with(']') { host } else { name }
        }
        _ => host,
    }
}

/// What links start with, without a slash at its end: the organization's address, or the configured one; else the host of the
/// request where it is a loopback name with the listener's port; else where this listens.
fn base_url(app: &App, organization: Option<&OrganizationRow>, host: Option<&str>) -> String {
    if let Some(url) = organization.and_then(|row| row.base_url.as_deref()) {
        return url.trim_end_matches('/').to_owned();
    }
    if app.config.base_url.is_none()
        && let Some((host, listening)) = host.zip(app.listening.get())
        && is_loopback(host, listening.packages.port())
    {
        return format!("{}://{host}", app.packages_scheme());
    }
    app.base_url()
}

fn is_loopback(host: &str, port: u16) -> bool {
    let here = ["localhost", "127.0.0.1", "[::1]"].contains(&without_port(host));
    let stated = host.strip_prefix(without_port(host)).and_then(|rest| rest.strip_prefix(':'));
    // As it is written: a port has no sign and no leading zero.
    here && stated.is_some_and(|text| !text.starts_with(['+', '0']) && text.parse() == Ok(port))
}

/// The realm of a challenge: the host's name, since some clients send a credential to no other realm.
pub(crate) fn realm(base_url: &str) -> &str {
    let host = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    without_port(host.split('/').next().unwrap_or(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, host: Option<&str>) -> OrganizationRow {
        let host = host.map(str::to_owned);
        OrganizationRow {
            id: OrganizationId(id),
            name: id.to_string(),
            base_url: None,
            host,
            created_at: 0,
            quota_bytes: None,
        }
    }

    #[test]
    fn the_host_picks_the_organization() {
        let all = [row(1, Some("a.example")), row(2, Some("b.example:8080")), row(3, None)];
        let found = |host| by_host(&all, host).map(|row| row.id.0);
        assert_eq!(found("a.example"), Some(1));
        assert_eq!(found("a.example:443"), Some(1));
        assert_eq!(found("b.example:8080"), Some(2));
        assert_eq!(found("b.example"), None);
        assert_eq!(found("c.example"), None);
    }

    #[test]
    fn a_realm_is_a_name_without_scheme_and_port() {
        for (url, expected) in [
            ("https://packages.example", "packages.example"),
            ("http://127.0.0.1:8080/below", "127.0.0.1"),
            ("http://[::1]:8080", "[::1]"),
            ("http://[::1]", "[::1]"),
        ] {
            assert_eq!(realm(url), expected);
        }
    }

    #[test]
    fn loopback_counts_with_the_listeners_port_alone() {
        assert!(is_loopback("localhost:8080", 8080));
        assert!(is_loopback("[::1]:8080", 8080));
        assert!(!is_loopback("localhost", 8080));
        assert!(!is_loopback("localhost:80", 8080));
        assert!(!is_loopback("localhost:08080", 8080) && !is_loopback("localhost:+8080", 8080));
        assert!(!is_loopback("elsewhere:8080", 8080));
    }
}
