//! In what order the items of a page stand that come from several pieces: what is noted of each with its piece, and the sorting of all.
//! A page of thousands of files has as many of them to read and to sort after each upload, so both are made to cost little.

/// Characters of a number in a note, with seven bits in each: it is read without being looked for.
const DIGITS: usize = 4;

/// Something that stands in a list of the page.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) name: &'a str,
    /// Which piece has it.
    pub(super) piece: usize,
    /// Where its text is in that, with what stands between it and the item before.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Its version, as texts can be compared.
    order: &'a str,
}

/// Notes an item whose text has so many bytes. Those of a piece are noted in their order.
pub(super) fn note(note: &mut String, order: &str, name: &str, text: usize) {
    for number in [order.len(), name.len(), text] {
        let digits = (0..DIGITS).rev().map(|digit| (number >> (7 * digit) & 0x7f) as u8);
        note.extend(digits.map(char::from));
    }
    note.push_str(order);
    note.push_str(name);
}

/// What is noted with these pieces, the lowest version first, then by name.
pub(super) fn in_order<'a>(notes: impl Iterator<Item = &'a str>) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    let mut common: Option<&str> = None;
    for (piece, mut rest) in notes.enumerate() {
        let (first, mut start) = (items.len(), 0);
        while let Some((order, name, length)) = next(&mut rest) {
            let end = start + length;
            items.push(Item { name, piece, start, end, order });
            start = end;
        }
        // What the first and the last begin with, all between them do.
        for item in [items.get(first), items.last()].into_iter().flatten() {
            common = Some(common.map_or(item.order, |common| both_begin_with(common, item.order)));
        }
    }
    let skipped = common.map_or(0, str::len);
    // What decides between most is sorted alone: the first bytes behind those that all have.
    let mut ranked: Vec<(u64, &Item<'_>)> = items
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

/// What both texts, which are ASCII, begin with.
fn both_begin_with<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    one.get(..same).unwrap_or_default()
}

/// The first eight bytes as a number: they compare as the texts do, unless they are the same.
fn rank(text: &[u8]) -> u64 {
    if let Some(first) = text.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    (0..8).fold(0, |rank, at| rank << 8 | u64::from(text.get(at).copied().unwrap_or_default()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code: to fail is how it speaks")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ops::Range;

    /// Pieces of these items: each in its order.
    fn noted(pieces: &mut [Vec<(String, String, usize)>]) -> Vec<String> {
        let noted = |piece: &mut Vec<(String, String, usize)>| {
            piece.sort();
            let mut text = String::new();
            piece.iter().for_each(|(order, name, length)| note(&mut text, order, name, *length));
            text
        };
        pieces.iter_mut().map(noted).collect()
    }

    proptest! {
        #[test]
        fn all_are_there_in_their_order_and_where_they_stand(
            mut pieces in prop::collection::vec(
                prop::collection::vec(("1[ab]{0,12}[0-9]{0,3}|", "[a-zé]{0,9}", 0_usize..300_000), 0..9),
                0..9,
            ),
        ) {
            let notes = noted(&mut pieces);
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
            let by_place = |mut items: Vec<(_, _, usize, Range<usize>)>| {
                items.sort_by_key(|item| (item.2, item.3.start, item.3.end, item.0, item.1));
                items
            };
            prop_assert_eq!(by_place(found), by_place(expected));
        }

        #[test]
        fn any_note_is_read(note in ".{0,40}") {
            in_order([note.as_str()].into_iter());
        }
    }
}
