//! The PostgreSQL servers in a database URL: one, or several of which one is the primary.
//! Connecting tries the servers in turn, beginning with the last usable one. With
//! `target_session_attrs=read-write` (or `primary`), a read-only server is skipped.

use std::str::FromStr as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow};
use sqlx::{Connection as _, Row as _};

use crate::error::StoreError;

/// Name of the URL parameter that selects usable servers, as in libpq.
const ATTRIBUTES: &str = "target_session_attrs";
/// Query that returns true if a server is read-only. It runs only if the URL requires a server that
/// accepts writes.
const TAKES_NO_WRITES: &str =
    "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::BOOLEAN";

/// Servers of one database URL.
#[derive(Debug)]
pub(crate) struct Servers {
    each: Vec<PgConnectOptions>,
    must_take_writes: bool,
    good: AtomicUsize,
}

impl Servers {
    /// Parses an address such as
    /// `postgres://user:password@one:5432,two:5433/name?target_session_attrs=read-write`. `Invalid`
    /// if it is malformed; the error repeats no part of it.
    pub(crate) fn parse(address: &str) -> Result<Servers, StoreError> {
        let invalid = |why: &str| StoreError::Invalid(format!("the database URL {why}"));
        let no_address = || invalid("is not a valid postgres:// URL");
        let (scheme, rest) = address.split_once("://").ok_or_else(no_address)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credential, hosts) = match authority.rsplit_once('@') {
            Some((credential, hosts)) => (format!("{credential}@"), hosts),
            None => (String::new(), authority),
        };
        let (attributes, others): (Vec<&str>, Vec<&str>) =
            query.split('&').filter(|pair| !pair.is_empty()).partition(|pair| pair.starts_with(ATTRIBUTES));
        let must_take_writes = match attributes.first().and_then(|pair| pair.split_once('=')) {
            None => hosts.contains(','),
            Some((_, "any")) => false,
            Some((_, "read-write" | "primary")) => true,
            Some(_) => {
                return Err(invalid("asks for a read-only server: write target_session_attrs=read-write"));
            }
        };
        let options = |host: &str| {
            let one = format!("{scheme}://{credential}{host}/{path}?{}", others.join("&"));
            PgConnectOptions::from_str(&one).map_err(|_| no_address())
        };
        let each = hosts.split(',').map(options).collect::<Result<Vec<_>, _>>()?;
        Ok(Servers { each, must_take_writes, good: AtomicUsize::new(0) })
    }

    /// Returns the servers with other connection options.
    pub(crate) fn with(&self, change: impl Fn(PgConnectOptions) -> PgConnectOptions) -> Servers {
        let each = self.each.iter().cloned().map(change).collect();
        Servers { each, must_take_writes: self.must_take_writes, good: AtomicUsize::new(0) }
    }

    /// Connects to the first usable server. The error is that of the last server.
    pub(crate) async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let first = self.good.load(Ordering::Relaxed);
        let mut problem = None;
        for at in 0..self.each.len() {
            let at = (first + at) % self.each.len().max(1);
            let Some(options) = self.each.get(at) else { continue };
            match self.connect_to(options).await {
                Ok(connection) => {
                    self.good.store(at, Ordering::Relaxed);
                    return Ok(connection);
                }
                Err(error) => problem = Some(error),
            }
        }
        Err(problem.unwrap_or(sqlx::Error::PoolClosed))
    }

    /// Returns the options of the server that is usable now. If the URL has several servers, tries
    /// to connect to them. The error is that of the last server.
    pub(crate) async fn choose(&self) -> Result<PgConnectOptions, sqlx::Error> {
        if self.each.len() > 1 {
            let _ = self.connect().await?.close().await;
        }
        let chosen = self.each.get(self.good.load(Ordering::Relaxed));
        chosen.cloned().ok_or(sqlx::Error::PoolClosed)
    }

    async fn connect_to(&self, options: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
        let mut connection = PgConnection::connect_with(options).await?;
        if self.must_take_writes {
            let row: PgRow =
                sqlx::query(TAKES_NO_WRITES).persistent(false).fetch_one(&mut connection).await?;
            if row.try_get(0)? {
                let _ = connection.close().await;
                return Err(sqlx::Error::Io(std::io::Error::other(
                    "the server is a standby and does not accept writes",
                )));
            }
        }
        Ok(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_one_server_or_several() {
        let hosts = |address: &str| -> Vec<(String, u16)> {
            let servers = Servers::parse(address).unwrap();
            servers.each.iter().map(|one| (one.get_host().to_owned(), one.get_port())).collect()
        };
        let one = |host: &str, port: u16| (host.to_owned(), port);
        assert_eq!(hosts("postgres://u:p@a:1/x"), [one("a", 1)]);
        assert_eq!(hosts("postgresql://u@a:1,b:2/x?sslmode=disable"), [one("a", 1), one("b", 2)]);
        assert_eq!(hosts("postgres://a,b/x?target_session_attrs=any"), [one("a", 5432), one("b", 5432)]);
        for (address, writes) in [
            ("postgres://a/x", false),
            ("postgres://a,b/x", true),
            ("postgres://a,b/x?target_session_attrs=any", false),
            ("postgres://a/x?sslmode=prefer&target_session_attrs=read-write", true),
            ("postgres://a/x?target_session_attrs=primary", true),
        ] {
            assert_eq!(Servers::parse(address).unwrap().must_take_writes, writes, "{address}");
        }
        for address in ["postgres://a/x?target_session_attrs=standby", "postgres:/x", "postgres://a:no/x"] {
            assert!(Servers::parse(address).is_err(), "{address}");
        }
    }
}
