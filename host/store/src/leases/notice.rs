//! Notices between servers. On the channel of all: a line with the sender and the number of its announcement, then a line for each
//! transaction: its number, facts and what was touched, parted by tabs; `?` stands for what is too much for a notice, which is read
//! from the table. On the channel of one server: who has dropped what its announcements up to a number touch.

use crate::db::Committed;

/// The channel that all servers listen to.
pub(super) const OF_ALL: &str = "packhouse_changes";
/// PostgreSQL takes less than 8,000 bytes.
const MOST: usize = 7_900;

/// The channel of one server.
pub(super) fn channel_of(id: &str) -> String {
    format!("packhouse_{id}")
}

/// One transaction as a notice tells it.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Told {
    pub(super) xid: u64,
    /// None: it is to be read.
    pub(super) change: Option<Change>,
}

/// What a transaction changed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Change {
    pub(super) facts: String,
    pub(super) touched: Option<Vec<u8>>,
}

/// The notice of these transactions, of which the last has this number.
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

/// Who sent it, its number, and the transactions; none when it is not one.
pub(super) fn read_announcement(text: &str) -> Option<(&str, u64, Vec<Told>)> {
    let mut lines = text.split('\n');
    let (from, number) = lines.next()?.split_once(' ')?;
    let told = lines.map(|line| {
        let mut parts = line.splitn(3, '\t');
        let xid = parts.next()?.parse().ok()?;
        let (facts, touched) = (parts.next()?, parts.next()?);
        let whole = facts != "?" && touched != "?";
        let touched = (!touched.is_empty()).then(|| touched.as_bytes().to_vec());
        Some(Told { xid, change: whole.then(|| Change { facts: facts.to_owned(), touched }) })
    });
    Some((from, number.parse().ok()?, told.collect::<Option<_>>()?))
}

/// That `from` has dropped what announcements up to this number touch.
pub(super) fn dropped(from: &str, number: u64) -> String {
    format!("{from} {number}")
}

/// Who has dropped, and up to which announcement.
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
    fn what_is_announced_is_read() {
        let sent = [committed(7, " t1 t2 ", None), committed(8, "", Some(b"[[1,2,3]]"))];
        let text = announcement("ab", 5, &sent);
        let (from, number, told) = read_announcement(&text).unwrap();
        assert_eq!((from, number, told.len()), ("ab", 5, 2));
        let change = |facts: &str, touched: Option<&[u8]>| {
            Some(Change { facts: facts.to_owned(), touched: touched.map(<[u8]>::to_vec) })
        };
        assert_eq!(told[0], Told { xid: 7, change: change("t1 t2", None) });
        assert_eq!(told[1], Told { xid: 8, change: change("", Some(b"[[1,2,3]]")) });
        for text in ["", "ab", "ab x", "ab 1\n7", "ab 1\nx\t\t"] {
            assert!(read_announcement(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn what_is_too_much_is_to_be_read() {
        let long = vec![b'x'; 4000];
        let sent: Vec<Committed> = (1..9).map(|xid| committed(xid, "", Some(&long))).collect();
        let text = announcement("ab", 5, &sent);
        assert!(text.len() < 8000);
        let (_, _, told) = read_announcement(&text).unwrap();
        assert!(told[0].change.is_some() && told[1].change.is_none() && told.len() == 2);
    }
}
