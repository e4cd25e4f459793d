//! Which organization a request is for, by its host; and the public address that links start with.

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
        let found = organization_at(&all, host);
        context.base_url = app.base_url_at(found, context.site.as_ref(), Side::Packages);
        let site = context.site.as_ref();
        context.follows_unknown_site = found.is_some_and(|found| app.follows_unknown_site(found, site));
        context.own_address = own_address(app, found, host);
        let organization = found.ok_or_else(|| HttpError::of(&catalogue::UNAUTHORIZED))?;
        context.organization = Some(organization.id);
        Ok(organization.id)
    }

    /// What follows the path of the public address in a request's path, where it lies there: requests arrive with it. What clients need
    /// at the root of a name is answered there as well, so another path stays as it is.
    pub(crate) async fn inner_path<'a>(&self, app: &App, host: Option<&str>, raw: &'a str) -> &'a str {
        // Health is answered while the store cannot be reached.
        if ["/", "/livez", "/readyz"].contains(&raw) {
            return raw;
        }
        let all = self.all(app).await.ok().or_else(|| self.last());
        let found = all.as_deref().and_then(|all| organization_at(all, host));
        let own = found.and_then(|row| row.base_url.as_deref()).and_then(|url| url.parse::<Url>().ok());
        let path = own.as_ref().map_or(app.config.base_path(), |url| url.path().trim_end_matches('/'));
        below(raw, path).unwrap_or(raw)
    }

    /// The list as it was read last, however long ago.
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
        read.as_ref().filter(|(at, _)| at.elapsed() < FRESH).map(|(_, all)| Arc::clone(all))
    }
}

/// The realm of a challenge: the host's name, since some clients send a credential to no other realm.
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
