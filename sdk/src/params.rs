//! Parameters that a row's pattern matched in a request's path.

/// Named parts of a path: `{name}` is one segment, `{name..}` is one or more. Segments are
/// percent-decoded.
#[derive(Debug, Default)]
pub struct Params<'a> {
    taken: Vec<(&'static str, &'a [String])>,
}

impl<'a> Params<'a> {
    pub(crate) fn new(taken: Vec<(&'static str, &'a [String])>) -> Self {
        Self { taken }
    }

    /// Returns the first segment that the parameter of this name matched; empty if the pattern has
    /// no such parameter.
    pub fn segment(&self, name: &str) -> &'a str {
        self.segments(name).first().map_or("", String::as_str)
    }

    /// Returns the segments that the parameter of this name matched; empty if the pattern has no
    /// such parameter.
    pub fn segments(&self, name: &str) -> &'a [String] {
        self.taken.iter().find(|(taken, _)| *taken == name).map_or(&[], |(_, segments)| segments)
    }

    /// Returns the segments that the parameter of this name matched, joined by `/`.
    pub fn joined(&self, name: &str) -> String {
        self.segments(name).join("/")
    }

    /// Returns the value of the pattern's first parameter, joined by `/`.
    pub(crate) fn first(&self) -> Option<String> {
        self.taken.first().map(|(_, segments)| segments.join("/"))
    }
}
