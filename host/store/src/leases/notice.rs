//! Notices between servers, sent over channels of PostgreSQL.
//!
//! The common channel carries announcements. The first line has the sender and the number of the
//! announcement. Each further line describes one transaction: its number, facts and touched
//! content, separated by tabs. `?` replaces content that is too large for a notice; receivers read
//! it from the table `announced_changes`.
//!
//! The channel of a server carries acknowledgements. Each states that its sender has dropped
//! everything that the announcements up to a number affect.

use crate::db::Committed;

/// Name of the common channel.
pub(super) const OF_ALL: &str = "packhouse_changes";
/// Maximum bytes of a notice. PostgreSQL requires less than 8,000.
const MOST: usize = 7_900;

/// Name of the channel of one server.
pub(super) fn channel_of(id: &str) -> String {
    format!("packhouse_{id}")
}

/// One transaction in a notice.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct LeaseNotice {
    pub(super) xid: u64,
    /// The change; `None` if it must be read from the table.
    pub(super) change: Option<TransactionChange>,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct TransactionChange {
    pub(super) facts: String,
    pub(super) touched: Option<Vec<u8>>,
}

/// Text of the announcement of these transactions. `number` is the number of the last announcement
/// among them.
pub(super) fn announcement(from: &str, number: u64, transactions: &[Committed]) -> String {
    let mut text = format!("{from} {number}");
    for Committed { xid, facts, touched, .. } in transactions {
        let xid = xid.unwrap_or_default();
        let touched = touched.as_deref().map(std::str::from_utf8).transpose().unwrap_or(Some("?"));
        let line = format!("\n{xid}\t{}\t{}", facts.trim(), touched.unwrap_or_default());
        if text.len() + line.len() + 32 <= MOST {
            text.push_str(&line);
            continue;
        }
        text.push_str("\n0\t?\t");
        break;
    }
    text
}

/// Parses an announcement into sender, number and transactions; `None` if it is malformed.
pub(super) fn read_announcement(text: &str) -> Option<(&str, u64, Vec<LeaseNotice>)> {
    let mut lines = text.split('\n');
    let (from, number) = lines.next()?.split_once(' ')?;
    let transactions = lines.map(|line| {
        let mut parts = line.splitn(3, '\t');
        let xid = parts.next()?.parse().ok()?;
        let (facts, touched) = (parts.next()?, parts.next()?);
        let whole = facts != "?" && touched != "?";
        let touched = (!touched.is_empty()).then(|| touched.as_bytes().to_vec());
        Some(LeaseNotice {
            xid,
            change: whole.then(|| TransactionChange { facts: facts.to_owned(), touched }),
        })
    });
    Some((from, number.parse().ok()?, transactions.collect::<Option<_>>()?))
}

/// Text that acknowledges all announcements up to this number.
pub(super) fn dropped(from: &str, number: u64) -> String {
    format!("{from} {number}")
}

/// Parses an acknowledgement into sender and number.
pub(super) fn read_dropped(text: &str) -> Option<(&str, u64)> {
    let (from, number) = text.split_once(' ')?;
    Some((from, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed(xid: u64, facts: &str, touched: Option<&[u8]>) -> Committed {
        let touched = touched.map(Into::into);
        Committed { xid: Some(xid), facts: facts.to_owned(), touched, holders: Vec::new() }
    }

    #[test]
    fn announcements_are_parsed_as_written() {
        let sent = [committed(7, " t1 t2 ", None), committed(8, "", Some(b"[[1,2,3]]"))];
        let text = announcement("ab", 5, &sent);
        let (from, number, read) = read_announcement(&text).unwrap();
        assert_eq!((from, number, read.len()), ("ab", 5, 2));
        let change = |facts: &str, touched: Option<&[u8]>| {
            Some(TransactionChange { facts: facts.to_owned(), touched: touched.map(<[u8]>::to_vec) })
        };
        assert_eq!(read[0], LeaseNotice { xid: 7, change: change("t1 t2", None) });
        assert_eq!(read[1], LeaseNotice { xid: 8, change: change("", Some(b"[[1,2,3]]")) });
        for text in ["", "ab", "ab x", "ab 1\n7", "ab 1\nx\t\t"] {
            assert!(read_announcement(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn large_changes_are_read_from_the_table() {
        let long = vec![b'x'; 4000];
        let sent: Vec<Committed> = (1..9).map(|xid| committed(xid, "", Some(&long))).collect();
        let text = announcement("ab", 5, &sent);
        assert!(text.len() < 8000);
        let (_, _, read) = read_announcement(&text).unwrap();
        assert!(read[0].change.is_some() && read[1].change.is_none() && read.len() == 2);
    }
}
