//! Finds the organization of a request by its host, and the public URL with which links begin.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use packhouse_store::{OrganizationId, OrganizationRow};
use url::Url;

use crate::error_response::HttpError;
use crate::request_context::RequestContext;
use packhouse_app::App;
use packhouse_app::links::Side;
use packhouse_app::served::{organization_at, own_address};
use packhouse_wire::catalogue;
use packhouse_wire::host::without_port;
use packhouse_wire::path::below;

/// Maximum age of the list. After this time, the server finds an organization that another process
/// created.
const MAX_AGE: Duration = Duration::from_secs(1);

/// Cached list of the organizations. The list is short and rarely changes, so the server reads it
/// only once in a while.
#[derive(Default)]
pub(crate) struct Organizations {
    read: Mutex<Option<(Instant, Arc<[OrganizationRow]>)>>,
}

impl Organizations {
    /// Finds the organization of this host, or the only organization. Sets the base URL of links in
    /// `context`. Fails with 401 if the host has no organization, and with 503 if the store cannot
    /// be read.
    pub(crate) async fn find(
        &self,
        app: &App,
        host: Option<&str>,
        context: &mut RequestContext,
    ) -> Result<OrganizationId, HttpError> {
        let all = self.all(app).await?;
        let found = organization_at(&all, host);
        context.base_url = app.base_url_at(found, context.site.as_ref(), Side::Packages);
        let site = context.site.as_ref();
        context.follows_unknown_site = found.is_some_and(|found| app.follows_unknown_site(found, site));
        context.own_address = own_address(app, found, host);
        let organization = found.ok_or_else(|| HttpError::of(&catalogue::UNAUTHORIZED))?;
        context.organization = Some(organization.id);
        Ok(organization.id)
    }

    /// Returns the part of a request's path after the path of the public URL. Returns other paths
    /// unchanged, because some endpoints must be at the root of the host.
    pub(crate) async fn inner_path<'a>(&self, app: &App, host: Option<&str>, raw: &'a str) -> &'a str {
        // Health endpoints must work without the store.
        if ["/", "/livez", "/readyz"].contains(&raw) {
            return raw;
        }
        let all = self.all(app).await.ok().or_else(|| self.last());
        let found = all.as_deref().and_then(|all| organization_at(all, host));
        let own = found.and_then(|row| row.base_url.as_deref()).and_then(|url| url.parse::<Url>().ok());
        let path = own.as_ref().map_or(app.config.base_path(), |url| url.path().trim_end_matches('/'));
        below(raw, path).unwrap_or(raw)
    }

    /// Returns the list that was last read, however old it is.
    fn last(&self) -> Option<Arc<[OrganizationRow]>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.as_ref().map(|(_, all)| Arc::clone(all))
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
        read.as_ref().filter(|(at, _)| at.elapsed() < MAX_AGE).map(|(_, all)| Arc::clone(all))
    }
}

/// Returns the realm of a challenge. It is the host name, because some clients send credentials
/// only if the realm is the host name.
pub(crate) fn realm(base_url: &str) -> &str {
    let host = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    without_port(host.split('/').next().unwrap_or(host))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
