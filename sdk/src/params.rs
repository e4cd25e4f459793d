//! What a row's pattern took from a request's path.

/// The parts of a path that a pattern names: `{name}` is one segment, `{name..}` is one or more. Segments are decoded already.
#[derive(Debug, Default)]
pub struct Params<'a> {
    taken: Vec<(&'static str, &'a [String])>,
}

impl<'a> Params<'a> {
    pub(crate) fn new(taken: Vec<(&'static str, &'a [String])>) -> Self {
        Self { taken }
    }

    /// The segment of this name, the first one of several; empty where the pattern has no such name.
    pub fn segment(&self, name: &str) -> &'a str {
        self.segments(name).first().map_or("", String::as_str)
    }

    /// The segments of this name; none where the pattern has no such name.
    pub fn segments(&self, name: &str) -> &'a [String] {
        self.taken.iter().find(|(taken, _)| *taken == name).map_or(&[], |(_, segments)| segments)
    }

    /// The segments of this name, joined by `/`.
    pub fn joined(&self, name: &str) -> String {
        self.segments(name).join("/")
    }

    /// What the pattern's first parameter took, joined by `/`.
    pub(crate) fn first(&self) -> Option<String> {
        self.taken.first().map(|(_, segments)| segments.join("/"))
    }
}
