//! Severity of an advisory, from a word or from a CVSS 3 base score.

use serde::Serialize;

/// Severity levels in ascending order.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The advisory states no severity.
    #[default]
    Unknown,
    /// Base scores below 4.
    Low,
    /// Base scores below 7.
    Moderate,
    /// Base scores below 9.
    High,
    /// Base scores of 9 and above.
    Critical,
}

impl Severity {
    /// Returns the severity for the word in an advisory, in any letter case.
    pub fn of_word(word: &str) -> Severity {
        match word.to_ascii_lowercase().as_str() {
            "low" => Severity::Low,
            "moderate" | "medium" => Severity::Moderate,
            "high" => Severity::High,
            "critical" => Severity::Critical,
            _ => Severity::Unknown,
        }
    }

    /// Returns the severity for a base score from 0 to 10. A score of 0 gives `Unknown`.
    pub fn of_score(score: f64) -> Severity {
        match score {
            score if score >= 9.0 => Severity::Critical,
            score if score >= 7.0 => Severity::High,
            score if score >= 4.0 => Severity::Moderate,
            score if score > 0.0 => Severity::Low,
            _ => Severity::Unknown,
        }
    }

    /// Returns the rank in the database: from 0 for `Unknown` to 4 for `Critical`.
    pub fn rank(self) -> i64 {
        self as i64
    }

    /// Returns the severity for a rank. Other numbers give `Unknown`.
    pub fn of_rank(rank: i64) -> Severity {
        match rank {
            1 => Severity::Low,
            2 => Severity::Moderate,
            3 => Severity::High,
            4 => Severity::Critical,
            _ => Severity::Unknown,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Unknown => "unknown",
            Severity::Low => "low",
            Severity::Moderate => "moderate",
            Severity::High => "high",
            Severity::Critical => "critical",
        }
    }
}

/// Computes the base score of a CVSS 3.0 or 3.1 vector (section 7.1 of the specification). Returns
/// `None` if the vector is invalid or of another version.
pub(crate) fn base_score(vector: &str) -> Option<f64> {
    let metrics = vector.strip_prefix("CVSS:3.0/").or_else(|| vector.strip_prefix("CVSS:3.1/"))?;
    let value = |name: &str| {
        let mut pairs = metrics.split('/').filter_map(|metric| metric.split_once(':'));
        pairs.find(|(metric, _)| *metric == name).map(|(_, value)| value)
    };
    let of = |name: &str, weights: &[(&str, f64)]| {
        let value = value(name)?;
        weights.iter().find(|(word, _)| *word == value).map(|(_, weight)| *weight)
    };
    let changed = match value("S")? {
        "U" => false,
        "C" => true,
        _ => return None,
    };
    let loss = [("N", 0.0), ("L", 0.22), ("H", 0.56)];
    let (confidentiality, integrity, availability) = (of("C", &loss)?, of("I", &loss)?, of("A", &loss)?);
    let privileges = if changed {
        [("N", 0.85), ("L", 0.68), ("H", 0.5)]
    } else {
        [("N", 0.85), ("L", 0.62), ("H", 0.27)]
    };
    let exploitability = 8.22
        * of("AV", &[("N", 0.85), ("A", 0.62), ("L", 0.55), ("P", 0.2)])?
        * of("AC", &[("L", 0.77), ("H", 0.44)])?
        * of("PR", &privileges)?
        * of("UI", &[("N", 0.85), ("R", 0.62)])?;
    let base = 1.0 - (1.0 - confidentiality) * (1.0 - integrity) * (1.0 - availability);
    let impact = if changed { 7.52 * (base - 0.029) - 3.25 * (base - 0.02).powi(15) } else { 6.42 * base };
    if impact <= 0.0 {
        return Some(0.0);
    }
    let score = if changed { 1.08 * (impact + exploitability) } else { impact + exploitability };
    Some(rounded_up(score.min(10.0)))
}

/// Rounds up to one decimal, as CVSS 3.1 defines it. Rounds to five decimals first, so that the
/// error of a binary fraction does not raise a score by a tenth.
fn rounded_up(score: f64) -> f64 {
    let whole = (score * 100_000.0).round();
    if whole % 10_000.0 == 0.0 { whole / 100_000.0 } else { ((whole / 10_000.0).floor() + 1.0) / 10.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_match_the_specification() {
        for (vector, score, severity) in [
            ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", 9.8, Severity::Critical),
            ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H", 10.0, Severity::Critical),
            ("CVSS:3.1/AV:N/AC:H/PR:N/UI:R/S:U/C:L/I:L/A:N", 4.2, Severity::Moderate),
            ("CVSS:3.0/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N", 6.1, Severity::Moderate),
            ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H", 7.5, Severity::High),
            ("CVSS:3.1/AV:L/AC:L/PR:H/UI:N/S:U/C:L/I:N/A:N", 2.3, Severity::Low),
            ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N", 0.0, Severity::Unknown),
        ] {
            let found = base_score(vector).unwrap();
            assert!((found - score).abs() < 1e-9, "{vector}: {found}");
            assert_eq!(Severity::of_score(found), severity);
        }
        for wrong in ["", "CVSS:4.0/AV:N", "CVSS:3.1/AV:N", "CVSS:3.1/AV:X/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"] {
            assert_eq!(base_score(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn words_and_ranks_convert_both_ways() {
        for severity in
            [Severity::Unknown, Severity::Low, Severity::Moderate, Severity::High, Severity::Critical]
        {
            assert_eq!(Severity::of_rank(severity.rank()), severity);
            assert_eq!(Severity::of_word(severity.as_str()), severity);
        }
        assert_eq!(Severity::of_word("MEDIUM"), Severity::Moderate);
    }
}
