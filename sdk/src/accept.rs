//! `Accept` header: media types that a client accepts, with their quality values (RFC 9110, section
//! 12.5.1).

/// Parsed `Accept` header of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accept<'a> {
    ranges: Vec<MediaRange<'a>>,
}

/// Media range: `text/html`, `text/*` or `*/*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MediaRange<'a> {
    types: &'a str,
    /// Quality value (`q`) in thousandths.
    quality: u32,
}

/// Quality 1 in thousandths, which is also that of a range without a `q` parameter.
const FULL_QUALITY: f64 = 1000.0;

impl<'a> Accept<'a> {
    /// Parses the field value. A `q` that is not a number counts as 0.
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        Self { ranges: text.split(',').filter_map(MediaRange::parse).collect() }
    }

    /// Returns the quality of the range that names exactly this type, in thousandths. 0 means that
    /// the client does not accept the type. `None` if no range names it exactly.
    #[must_use]
    pub fn named(&self, media_type: &str) -> Option<u32> {
        let mut ranges = self.ranges.iter();
        ranges.find(|range| range.types.eq_ignore_ascii_case(media_type)).map(|range| range.quality)
    }

    /// Returns the quality of this type in thousandths, taken from the narrowest range that matches
    /// the type. 0 means that the client does not accept the type.
    #[must_use]
    pub fn quality(&self, media_type: &str) -> u32 {
        let fitting = self.ranges.iter().filter_map(|range| Some((range.width(media_type)?, range.quality)));
        fitting.min_by_key(|(width, _)| *width).map_or(0, |(_, quality)| quality)
    }

    /// Returns the offered type with the highest quality; the first one wins a tie. `None` if the
    /// client accepts none of them.
    #[must_use]
    pub fn choose<'t>(&self, offered: impl IntoIterator<Item = &'t str>) -> Option<&'t str> {
        let mut best: Option<(u32, &str)> = None;
        for media_type in offered {
            let quality = self.quality(media_type);
            if quality > best.map_or(0, |(best, _)| best) {
                best = Some((quality, media_type));
            }
        }
        best.map(|(_, media_type)| media_type)
    }
}

/// Width of a media range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Width {
    One,
    Group,
    All,
}

impl<'a> MediaRange<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut pieces = text.split(';').map(str::trim);
        let types = pieces.next().filter(|types| !types.is_empty())?;
        let quality = pieces.find_map(|piece| piece.strip_prefix("q=").or(piece.strip_prefix("Q=")));
        let quality = quality.map_or(Some(1.0), |quality| quality.trim().parse::<f64>().ok());
        Some(Self { types, quality: (quality.unwrap_or(0.0).clamp(0.0, 1.0) * FULL_QUALITY) as u32 })
    }

    /// Returns the width of the range if it matches this type.
    fn width(&self, media_type: &str) -> Option<Width> {
        if self.types.eq_ignore_ascii_case(media_type) {
            return Some(Width::One);
        }
        let wide = self.types.strip_suffix("/*")?;
        if wide == "*" {
            return Some(Width::All);
        }
        let (group, _) = media_type.split_once('/')?;
        wide.eq_ignore_ascii_case(group).then_some(Width::Group)
    }
}

#[cfg(test)]
mod tests {
    use super::Accept;
    use proptest::prelude::*;

    #[test]
    fn the_narrowest_range_counts() {
        let accept =
            Accept::parse("text/*;q=0.3, TEXT/html; Q=0.7, */*;q=0.1, text/plain;q=0, a/b;q=x,, c/d;v=1;q=2");
        for (media_type, quality, named) in [
            ("text/html", 700, Some(700)),
            ("text/css", 300, None),
            ("text/plain", 0, Some(0)),
            ("image/png", 100, None),
            ("a/b", 0, Some(0)),
            ("c/d", 1000, Some(1000)),
        ] {
            assert_eq!(
                (accept.quality(media_type), accept.named(media_type)),
                (quality, named),
                "{media_type}"
            );
        }
    }

    #[test]
    fn the_first_of_equal_types_is_chosen() {
        let offered = ["text/html", "application/json"];
        for (accept, chosen) in [
            ("*/*", Some("text/html")),
            ("text/html;q=0.5, application/json", Some("application/json")),
            ("application/*", Some("application/json")),
            ("image/png", None),
            ("", None),
        ] {
            assert_eq!(Accept::parse(accept).choose(offered), chosen, "{accept}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".{0,80}") {
            let _ = Accept::parse(&text).choose(["text/html"]);
        }
    }
}
