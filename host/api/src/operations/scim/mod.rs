//! Members and teams, as a company's directory manages them through SCIM. All operations need
//! manage-members.

pub mod groups;
pub mod users;

/// Part of a list that a client requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ListWindow {
    /// Number of items before the part.
    pub offset: usize,
    /// Maximum number of items in the part.
    pub count: usize,
}

impl ListWindow {
    /// Returns whether the item with this number, from 0, is in the part.
    fn contains(self, number: usize) -> bool {
        number.checked_sub(self.offset).is_some_and(|within| within < self.count)
    }

    /// Cuts the part from a complete list.
    fn cut<T>(self, all: Vec<T>) -> ListPart<T> {
        let total = all.len();
        ListPart { total, rows: all.into_iter().skip(self.offset).take(self.count).collect() }
    }
}

/// Part of a list, with the length of the whole list.
#[derive(Debug)]
pub struct ListPart<T> {
    pub total: usize,
    pub rows: Vec<T>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_a_part_of_the_list_and_its_length() {
        for (offset, count, expected) in
            [(0, 2, vec![0, 1]), (3, 2, vec![3]), (4, 1, vec![]), (9, 9, vec![]), (0, 0, vec![])]
        {
            let window = ListWindow { offset, count };
            let cut = window.cut((0..4).collect::<Vec<usize>>());
            assert_eq!((cut.total, &cut.rows), (4, &expected));
            assert_eq!((0..4).filter(|number| window.contains(*number)).collect::<Vec<usize>>(), expected);
        }
        assert!(!ListWindow { offset: 1, count: usize::MAX }.contains(0));
    }
}
