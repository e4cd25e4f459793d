//! Set of transactions that a statement could see: a `pg_snapshot` of PostgreSQL, written
//! `xmin:xmax:xip,xip`.

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Position {
    text: String,
    xmin: u64,
    xmax: u64,
    running: Vec<u64>,
}

impl Position {
    /// Parses the text; `None` if it is malformed.
    pub(super) fn read(text: String) -> Option<Position> {
        let mut parts = text.split(':');
        let (xmin, xmax) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let running = parts.next()?.split(',').filter(|xid| !xid.is_empty());
        let running = running.map(|xid| xid.parse().ok()).collect::<Option<_>>()?;
        Some(Position { text, xmin, xmax, running })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// True if this transaction had ended.
    pub(super) fn saw(&self, xid: u64) -> bool {
        xid < self.xmin || (xid < self.xmax && !self.running.contains(&xid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_transactions_are_not_visible() {
        let position = Position::read("10:20:10,14,15".to_owned()).unwrap();
        for (xid, visible) in [(9, true), (10, false), (11, true), (14, false), (19, true), (20, false)] {
            assert_eq!(position.saw(xid), visible, "{xid}");
        }
        assert!(Position::read("7:7:".to_owned()).is_some_and(|position| !position.saw(7)));
        for text in ["", "1:2", "1:x:", "1:2:y"] {
            assert!(Position::read(text.to_owned()).is_none(), "{text}");
        }
    }
}
