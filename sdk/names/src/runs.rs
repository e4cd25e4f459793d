//! Cutting of a long list of keys into runs. A change of the list affects only the run that
//! contains it, and at most one neighbour.

use std::ops::Range;

/// Average number of items in a run.
const MEAN: u64 = 32;
/// Largest number of items in a run.
const MOST: u32 = 128;

/// Cuts a list into runs. Whether a run ends after an item depends on the item alone. Adding or
/// removing an item therefore changes only the run that contains it, and at most one neighbour.
/// Runs have 32 items on average, and 128 at most.
///
/// ```
/// let numbers: Vec<String> = (0..1000).map(|number| format!("1.{number}.0")).collect();
/// let runs: Vec<_> = packhouse_names::runs(&numbers, String::as_str).collect();
/// assert_eq!(runs.first().map(|run| run.start), Some(0));
/// assert_eq!(runs.last().map(|run| run.end), Some(1000));
/// ```
pub fn runs<T>(items: &[T], key: impl Fn(&T) -> &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = items.get(start..).filter(|rest| !rest.is_empty())?;
        let mut run = 0;
        let last = rest.iter().position(|item| ends_run(&mut run, key(item)));
        let run = start..start + last.map_or(rest.len(), |last| last + 1);
        start = run.end;
        Some(run)
    })
}

/// Cuts a page of keys into runs. Each run is given by its last key and its number of keys. If
/// there are `more` keys after the page, an unfinished run at its end is left for the next page.
///
/// ```
/// let keys = ["a", "b", "c"];
/// let runs = packhouse_names::runs_of_page(keys.into_iter(), false);
/// assert_eq!(runs.iter().map(|(_, count)| count).sum::<u32>(), 3);
/// ```
pub fn runs_of_page<'a>(keys: impl Iterator<Item = &'a str>, more: bool) -> Vec<(String, u32)> {
    let (mut runs, mut run, mut last) = (Vec::new(), 0, None);
    for key in keys {
        last = Some(key);
        let count = run + 1;
        if ends_run(&mut run, key) {
            runs.push((key.to_owned(), count));
        }
    }
    // An unfinished run continues on the next page, unless this page is the last.
    if let Some(last) = last.filter(|_| run > 0 && !more) {
        runs.push((last.to_owned(), run));
    }
    runs
}

/// Adds one item to the run, and returns true if the item is the last of the run. `run` is the
/// number of items in the run so far, and is 0 again after the last item.
fn ends_run(run: &mut u32, key: &str) -> bool {
    *run += 1;
    let ended = *run == MOST || ends(key);
    if ended {
        *run = 0;
    }
    ended
}

/// True if a run ends after this item. The hash is FNV-1a; its low bits alone would depend little
/// on the beginning of a key. The hash must be cheap, because it is computed for each key of a long
/// list. It need not resist chosen keys: choosing keys that change the lengths of runs has no
/// benefit.
fn ends(key: &str) -> bool {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = key.bytes().fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    (hash ^ (hash >> 32)).is_multiple_of(MEAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn cut(numbers: &[String]) -> BTreeSet<Vec<String>> {
        runs(numbers, String::as_str).map(|run| numbers[run].to_vec()).collect()
    }

    #[test]
    fn an_item_more_or_less_changes_a_run_or_two() {
        let all: Vec<String> = (0..2000).map(|number| format!("1.{number}.0")).collect();
        let whole = cut(&all);
        assert!((30..130).contains(&whole.len()), "{} runs", whole.len());
        assert_eq!(whole.iter().map(Vec::len).sum::<usize>(), all.len());
        for left_out in [0, 1, 777, 1999] {
            let mut without = all.clone();
            without.remove(left_out);
            let cut = cut(&without);
            assert!(whole.difference(&cut).count() <= 2 && cut.difference(&whole).count() <= 2, "{left_out}");
        }
    }

    #[test]
    fn pages_are_cut_as_the_whole_is() {
        let all: Vec<String> = (0..2000).map(|number| format!("1.{number}.0")).collect();
        let lasts =
            |runs: Vec<(String, u32)>| -> Vec<String> { runs.into_iter().map(|(last, _)| last).collect() };
        let whole = lasts(runs_of_page(all.iter().map(String::as_str), false));
        assert_eq!(whole, runs(&all, String::as_str).map(|run| all[run.end - 1].clone()).collect::<Vec<_>>());
        for page in [150, 777, 2000] {
            let (mut found, mut start) = (Vec::new(), 0);
            loop {
                let end = all.len().min(start + page);
                let runs = runs_of_page(all[start..end].iter().map(String::as_str), end < all.len());
                start += runs.iter().map(|(_, count)| *count as usize).sum::<usize>();
                found.extend(lasts(runs));
                if start == all.len() {
                    break;
                }
            }
            assert_eq!(found, whole, "pages of {page}");
        }
    }

    #[test]
    fn a_run_has_an_end() {
        let same = vec!["7".to_owned(); 1000];
        assert!(runs(&same, String::as_str).all(|run| (1..=MOST as usize).contains(&run.len())));
        assert_eq!(runs(&[], String::as_str).count(), 0);
    }
}
