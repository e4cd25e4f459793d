//! Sorts the items of a page that is built from cached pieces. Each piece has a note, which lists
//! the piece's items. After each upload to a project with thousands of files, the plugin reads and
//! sorts all items again, so both steps must be cheap.

/// Number of characters for a number in a note. Each character holds seven bits. Because of the
/// fixed width, a reader need not search for the end of a number.
const DIGITS: usize = 4;

/// An item of the page: a file or a version.
#[derive(Clone, Copy)]
pub(super) struct PageItem<'a> {
    pub(super) name: &'a str,
    /// Index of the piece that contains the item.
    pub(super) piece: usize,
    /// Start of the item's text in the piece, including the separator before the text.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The version's sort key.
    order: &'a str,
}

/// Appends an item to a piece's note. `order` is the item's sort key, and `text` is the length of
/// its text in bytes. The caller must add the items in the order of their texts in the piece.
pub(super) fn note(note: &mut String, order: &str, name: &str, text: usize) {
    for number in [order.len(), name.len(), text] {
        let digits = (0..DIGITS).rev().map(|digit| (number >> (7 * digit) & 0x7f) as u8);
        note.extend(digits.map(char::from));
    }
    note.push_str(order);
    note.push_str(name);
}

/// Reads the items from the notes of these pieces, sorted by version, then by name.
pub(super) fn in_order<'a>(notes: impl Iterator<Item = &'a str>) -> Vec<PageItem<'a>> {
    let mut items = Vec::new();
    let mut common: Option<&str> = None;
    for (piece, mut rest) in notes.enumerate() {
        let (first, mut start) = (items.len(), 0);
        while let Some((order, name, length)) = next(&mut rest) {
            let end = start + length;
            items.push(PageItem { name, piece, start, end, order });
            start = end;
        }
        // The items of a piece are sorted. A prefix that its first and last sort keys share is
        // therefore common to all its sort keys.
        for item in [items.get(first), items.last()].into_iter().flatten() {
            common = Some(common.map_or(item.order, |common| both_begin_with(common, item.order)));
        }
    }
    let skipped = common.map_or(0, str::len);
    // The eight bytes after the common prefix decide most comparisons. Comparing them as one number
    // is fast.
    let mut ranked: Vec<(u64, &PageItem<'_>)> = items
        .iter()
        .map(|item| (rank(item.order.as_bytes().get(skipped..).unwrap_or_default()), item))
        .collect();
    ranked.sort_unstable_by(|(rank, one), (other_rank, other)| {
        rank.cmp(other_rank).then_with(|| (one.order, one.name).cmp(&(other.order, other.name)))
    });
    ranked.into_iter().map(|(_, item)| *item).collect()
}

fn next<'a>(note: &mut &'a str) -> Option<(&'a str, &'a str, usize)> {
    let (numbers, rest) = note.split_at_checked(3 * DIGITS)?;
    let mut numbers = numbers.as_bytes().chunks_exact(DIGITS).map(number);
    let (order, rest) = rest.split_at_checked(numbers.next()?)?;
    let (name, rest) = rest.split_at_checked(numbers.next()?)?;
    *note = rest;
    Some((order, name, numbers.next()?))
}

fn number(digits: &[u8]) -> usize {
    digits.iter().fold(0, |number, digit| number << 7 | usize::from(*digit))
}

/// Returns the common prefix of two ASCII texts.
fn both_begin_with<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    one.get(..same).unwrap_or_default()
}

/// Returns the first eight bytes of a text as a number. Two different numbers compare like the two
/// texts.
fn rank(text: &[u8]) -> u64 {
    if let Some(first) = text.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    (0..8).fold(0, |rank, at| rank << 8 | u64::from(text.get(at).copied().unwrap_or_default()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ops::Range;

    /// Builds the note of each piece, after sorting its items.
    fn notes(pieces: &mut [Vec<(String, String, usize)>]) -> Vec<String> {
        let note_of = |piece: &mut Vec<(String, String, usize)>| {
            piece.sort();
            let mut text = String::new();
            piece.iter().for_each(|(order, name, length)| note(&mut text, order, name, *length));
            text
        };
        pieces.iter_mut().map(note_of).collect()
    }

    proptest! {
        #[test]
        fn all_items_are_sorted_and_keep_their_position(
            mut pieces in prop::collection::vec(
                prop::collection::vec(("1[ab]{0,12}[0-9]{0,3}|", "[a-zé]{0,9}", 0_usize..300_000), 0..9),
                0..9,
            ),
        ) {
            let notes = notes(&mut pieces);
            let mut expected = Vec::new();
            for (piece, items) in pieces.iter().enumerate() {
                let mut start = 0;
                for (order, name, length) in items {
                    expected.push((order.as_str(), name.as_str(), piece, start..start + length));
                    start += length;
                }
            }
            let found = in_order(notes.iter().map(String::as_str));
            let found: Vec<_> =
                found.into_iter().map(|item| (item.order, item.name, item.piece, item.start..item.end)).collect();
            prop_assert!(found.is_sorted_by(|one, other| (one.0, one.1) <= (other.0, other.1)));
            let by_position = |mut items: Vec<(_, _, usize, Range<usize>)>| {
                items.sort_by_key(|item| (item.2, item.3.start, item.3.end, item.0, item.1));
                items
            };
            prop_assert_eq!(by_position(found), by_position(expected));
        }

        #[test]
        fn any_note_is_read(note in ".{0,40}") {
            in_order([note.as_str()].into_iter());
        }
    }
}
