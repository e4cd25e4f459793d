//! The page of all error codes, each with the test that provokes it.

use std::collections::BTreeSet;

use anyhow::Context as _;
use packhouse_wire::catalogue::{self, Code, Host};

use super::markdown::{cell, code, table};

const INTRO: &str = "\
# Error codes

This page lists every error code, its HTTP status and its message. [API conventions](api-conventions.md#errors) describes
the body of an error. `{}` in a message stands for details of the request; a message of `{}` alone names the field and what
is wrong with it. A status of 503 comes with `Retry-After: 5`,
except that of `membership_lookup_unavailable`.

The last column links to a test that provokes the code from outside.

## Codes of the server

";

const REGISTRIES: &str = "\
## Codes of container registries

The repository host answers clients of container registries in the words of their protocol. One code stands for several
errors there, which its message tells apart.

";

/// A row of tests/error-codes.tsv: a code, its status, and a test as `FILE::NAME`. If one code has
/// several messages, the first column also has the message.
struct Tested<'a> {
    code: &'a str,
    status: u16,
    test: &'a str,
}

/// The page. Fails if a row of `tests` is malformed, or if a code of the server has no row.
pub(super) fn page(tests: &str) -> anyhow::Result<String> {
    let tested = tests.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(row);
    let tested = tested.collect::<anyhow::Result<Vec<_>>>()?;
    let mut rows = Vec::new();
    for code in catalogue::ALL {
        let test = tested.iter().find(|row| row.code == code.code && row.status == code.status);
        let test = test.with_context(|| format!("tests/error-codes.tsv has no row for {}", code.code))?;
        rows.push(server_row(code, test));
    }
    let server = table(["code", "status", "listener", "message", "test"], &rows);
    let known: BTreeSet<&str> = catalogue::ALL.iter().map(|code| code.code).collect();
    let rows: Vec<_> = tested.iter().filter(|row| !known.contains(row.code)).map(registry_row).collect();
    let registries = table(["code", "status", "message", "test"], &rows);
    Ok(format!("{INTRO}{server}{REGISTRIES}{registries}"))
}

fn row(line: &str) -> anyhow::Result<Tested<'_>> {
    let malformed = || format!("tests/error-codes.tsv: `{line}` is not a code, a status and a test");
    let mut cells = line.split('\t');
    let (code, status, test) = (cells.next(), cells.next(), cells.next());
    let code = code.with_context(malformed)?;
    let status = status.and_then(|status| status.parse().ok()).with_context(malformed)?;
    let test = test.filter(|test| test.contains("::")).with_context(malformed)?;
    Ok(Tested { code, status, test })
}

fn server_row(row: &Code, tested: &Tested<'_>) -> [String; 5] {
    let listener = match row.host {
        Host::Api => "API",
        Host::Packages => "packages",
        Host::Both => "both",
    };
    let status = row.status.to_string();
    [code(row.code), status, listener.to_owned(), cell(row.sentence), link(tested.test)]
}

fn registry_row(row: &Tested<'_>) -> [String; 4] {
    let (name, message) = row.code.split_once(' ').unwrap_or((row.code, ""));
    [code(name), row.status.to_string(), cell(message), link(row.test)]
}

/// A link from docs/reference to a test.
fn link(test: &str) -> String {
    let (file, _) = test.split_once("::").unwrap_or((test, ""));
    let name = file.rsplit('/').next().unwrap_or(file);
    format!("[{}](../../{file})", cell(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_code_a_status_and_a_test() {
        let row = row("DENIED no rights\t403\ttests/a.rs::b").unwrap();
        assert_eq!((row.code, row.status, row.test), ("DENIED no rights", 403, "tests/a.rs::b"));
        assert_eq!(registry_row(&row), ["`DENIED`", "403", "no rights", "[a.rs](../../tests/a.rs)"]);
        for wrong in ["DENIED", "DENIED\tx\ttests/a.rs::b", "DENIED\t403\ttests/a.rs"] {
            assert!(super::row(wrong).is_err(), "{wrong}");
        }
    }
}
