//! Fields for settings: choices and switches with help, and quantities in units for people. The API
//! counts seconds and bytes; a form also offers hours, days and GB.

use maud::{Markup, html};
use packhouse_runtime::SettingUnit;

use super::{Choice, Filled, described};
use crate::fields::Fields;

/// A number with a unit.
#[derive(Clone, Copy)]
pub(crate) struct Quantity<'a> {
    pub(crate) label: &'a str,
    /// Name of the field in the form. The field of the unit has this name with `-unit`.
    pub(crate) name: &'a str,
    /// Unit in which the API stores the value.
    pub(crate) unit: SettingUnit,
    /// Explanation below the field, if not empty.
    pub(crate) hint: &'a str,
    /// Initial value in the API's unit; `None` if nothing is set.
    pub(crate) first: Option<u64>,
}

impl Filled<'_> {
    /// A drop-down list to choose one option, with an explanation below.
    pub(crate) fn select_with_hint(
        &self,
        label: &str,
        name: &str,
        choices: &[Choice],
        first: &str,
        hint: &str,
    ) -> Markup {
        let wrong = self.wrong(name);
        let chosen = self.fields.get(name).unwrap_or(first);
        let described = described(name, wrong.is_some(), !hint.is_empty());
        html! {
            div.field {
                label for=(name) { (label) }
                @if let Some(wrong) = &wrong { (wrong) }
                select id=(name) name=(name) aria-describedby=[described] data-kinds[name == "kind"] {
                    @for choice in choices {
                        option value=(choice.value) selected[choice.value == chosen] { (choice.label) }
                    }
                }
                (hint_of(name, hint))
            }
        }
    }

    /// A checkbox with an explanation below.
    pub(crate) fn switch(&self, label: &str, name: &str, first: bool, hint: &str) -> Markup {
        let wrong = self.wrong(name);
        let checked = self.is_checked(name, first);
        let described = described(name, wrong.is_some(), !hint.is_empty());
        html! {
            div.field {
                @if let Some(wrong) = &wrong { (wrong) }
                label.check {
                    input type="checkbox" name=(name) value="yes" checked[checked] aria-describedby=[described];
                    (label)
                }
                (hint_of(name, hint))
            }
        }
    }

    /// A number with a choice of units.
    pub(crate) fn quantity(&self, field: Quantity<'_>) -> Markup {
        let Quantity { label, name, unit, hint, first } = field;
        let wrong = self.wrong(name);
        let described = described(name, wrong.is_some(), !hint.is_empty());
        let (first, usual) = in_words(unit, first);
        let unit_name = unit_field(name);
        let chosen = match (self.fields.get(&unit_name), self.fields.has(name)) {
            (Some(chosen), _) => chosen,
            // A number that was submitted without a unit counts in the unit of the API.
            (None, true) => units(unit).first().map_or("", |(word, _)| *word),
            (None, false) => usual,
        };
        let units = units(unit);
        html! {
            div.field {
                label for=(name) { (label) }
                @if let Some(wrong) = &wrong { (wrong) }
                div.quantity {
                    input id=(name) name=(name) type="number" min="0" step="any" value=(self.fields.get(name).unwrap_or(&first))
                        autocomplete="off" aria-invalid=[wrong.is_some().then_some("true")] aria-describedby=[described];
                    @if let [(only, _)] = units { span { (only) } } @else {
                        label.away for=(unit_name) { "Unit of " (label) }
                        select id=(unit_name) name=(unit_name) {
                            @for (word, _) in units { option value=(word) selected[*word == chosen] { (word) } }
                        }
                    }
                }
                (hint_of(name, hint))
            }
        }
    }
}

fn hint_of(name: &str, hint: &str) -> Markup {
    html! { @if !hint.is_empty() { p.hint id={ (name) "-hint" } { (hint) } } }
}

fn unit_field(name: &str) -> String {
    format!("{name}-unit")
}

/// Returns the units that a form offers, the API's own first, with their size in it.
fn units(unit: SettingUnit) -> &'static [(&'static str, u64)] {
    match unit {
        SettingUnit::Seconds => &[("seconds", 1), ("minutes", 60), ("hours", 3_600), ("days", 86_400)],
        SettingUnit::Days => &[("days", 1)],
        SettingUnit::Bytes => {
            &[("bytes", 1), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)]
        }
    }
}

/// Returns a value in the largest unit in which it is a whole number. Without a value, returns the
/// unit that people use most.
fn in_words(unit: SettingUnit, value: Option<u64>) -> (String, &'static str) {
    let usual =
        if unit == SettingUnit::Bytes { "GB" } else { units(unit).first().map_or("", |(word, _)| *word) };
    let Some(value) = value.filter(|value| *value > 0) else {
        return (value.map(|none| none.to_string()).unwrap_or_default(), usual);
    };
    let whole = units(unit).iter().rev().find(|(_, size)| value.is_multiple_of(*size));
    whole.map_or((value.to_string(), usual), |(word, size)| ((value / size).to_string(), *word))
}

/// Reads a number from a form, in the API's unit. A number without a unit counts in the API's unit.
/// `None` if the text is not a number that is at least 0.
pub(crate) fn amount(fields: &Fields, name: &str, unit: Option<SettingUnit>) -> Option<u64> {
    let text = fields.text(name);
    let chosen = fields.text(&unit_field(name)).to_owned();
    match unit {
        Some(unit) if !chosen.is_empty() => {
            let (_, size) = units(unit).iter().find(|(word, _)| *word == chosen)?;
            multiply(text, *size)
        }
        _ => text.parse().ok(),
    }
}

/// Multiplies a decimal number such as `1.5` by a size, and drops the fraction of the product.
fn multiply(text: &str, size: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().ok()?;
    // Further digits make less than one byte of a terabyte.
    let digits: u64 = format!("{fraction:0<12.12}").parse().ok()?;
    let part = u128::from(digits) * u128::from(size) / 1_000_000_000_000;
    whole.checked_mul(size)?.checked_add(u64::try_from(part).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, unit: &str, api: SettingUnit) -> Option<u64> {
        let pairs = [("x", text), ("x-unit", unit)].map(|(name, value)| (name.to_owned(), value.to_owned()));
        amount(&Fields(pairs.into()), "x", Some(api))
    }

    #[test]
    fn quantities_are_read_in_their_unit() {
        let seconds = |text, unit| read(text, unit, SettingUnit::Seconds);
        assert_eq!(seconds("77", ""), Some(77));
        assert_eq!(seconds("77", "seconds"), Some(77));
        assert_eq!(seconds("2", "hours"), Some(7200));
        assert_eq!(seconds("0.5", "days"), Some(43_200));
        assert_eq!(read("1.5", "GB", SettingUnit::Bytes), Some(1_500_000_000));
        assert_eq!(read("0.000000000001", "TB", SettingUnit::Bytes), Some(1));
        for (text, unit) in [("-1", "days"), ("1,5", "days"), ("x", "days"), ("1", "weeks"), ("", "days")] {
            assert_eq!(seconds(text, unit), None, "{text} {unit}");
        }
        assert_eq!(read("99999999999999", "TB", SettingUnit::Bytes), None, "too many bytes");
    }

    #[test]
    fn quantities_appear_in_the_largest_whole_unit() {
        let seconds = |value| in_words(SettingUnit::Seconds, value);
        assert_eq!(seconds(Some(600)), ("10".to_owned(), "minutes"));
        assert_eq!(seconds(Some(77)), ("77".to_owned(), "seconds"));
        assert_eq!(seconds(Some(0)), ("0".to_owned(), "seconds"));
        assert_eq!(in_words(SettingUnit::Bytes, Some(1_500_000_000)), ("1500".to_owned(), "MB"));
        assert_eq!(in_words(SettingUnit::Bytes, None), (String::new(), "GB"));
    }
}
