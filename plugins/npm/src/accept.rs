//! Which of a packument's two forms a client asks for.

/// The media type of the abbreviated form. Clients compare it letter by letter.
pub(crate) const ABBREVIATED: &str = "application/vnd.npm.install-v1+json";

/// Whether `Accept` asks for the abbreviated form: it names it, and wants nothing else more.
pub(crate) fn abbreviated(accept: Option<&str>) -> bool {
    let Some(wanted) = quality(accept, ABBREVIATED).filter(|quality| *quality > 0) else { return false };
    quality(accept, "application/json").is_none_or(|full| wanted >= full)
}

/// In thousandths, as RFC 9110 has it; none where the type is not named.
fn quality(accept: Option<&str>, wanted: &str) -> Option<u32> {
    accept?.split(',').find_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let named = parts.next()?.eq_ignore_ascii_case(wanted);
        let quality = parts.find_map(|part| part.strip_prefix("q="));
        let parsed = quality.map_or(Some(1.0), |text| text.parse::<f32>().ok());
        named.then(|| (parsed.unwrap_or(0.0).clamp(0.0, 1.0) * 1000.0) as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_the_form_that_they_ask_for() {
        for (accept, expected) in [
            ("application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*", true),
            ("application/vnd.npm.install-v1+json", true),
            ("application/json;q=0.5, Application/vnd.npm.install-v1+json;q=0.5", true),
            ("application/json", false),
            ("*/*", false),
            ("application/json, application/vnd.npm.install-v1+json;q=0.5", false),
            ("application/vnd.npm.install-v1+json;q=0, */*", false),
            ("", false),
        ] {
            assert_eq!(abbreviated(Some(accept)), expected, "{accept}");
        }
        assert!(!abbreviated(None));
    }
}
