//! Extracts the links from an HTML page, such as an index for people and for old clients.

use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// Name and value of an attribute.
type Attribute = (&'static str, String);

/// An `a` element with an `href`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Link {
    pub(crate) href: String,
    attributes: Vec<Attribute>,
}

impl Link {
    /// The value of a requested attribute, if the link has it.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str())
    }

    fn of(mut attributes: Vec<Attribute>) -> Option<Link> {
        let at = attributes.iter().position(|(name, _)| *name == "href")?;
        let href = attributes.swap_remove(at).1.trim().to_owned();
        (!href.is_empty()).then_some(Link { href, attributes })
    }
}

/// The links of a page in order, with the attributes in `names`. Nothing else is stored, so that a
/// page full of attributes or syntax errors needs no more memory than its own size.
pub(crate) fn links(page: &str, names: &[&'static str]) -> Vec<Link> {
    let mut links = Vec::new();
    let mut open: Option<Vec<Attribute>> = None;
    let mut expects_value = false;
    let emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
        match event {
            CallbackEvent::OpenStartTag { name } => open = (name == b"a").then(Vec::new),
            CallbackEvent::AttributeName { name } => {
                let known = std::iter::once(&"href").chain(names).find(|known| known.as_bytes() == name);
                expects_value = match (&mut open, known) {
                    // If a tag has several attributes of the same name, the first one applies.
                    (Some(attributes), Some(known)) if attributes.iter().all(|(own, _)| own != known) => {
                        attributes.push((*known, String::new()));
                        true
                    }
                    _ => false,
                };
            }
            CallbackEvent::AttributeValue { value } if expects_value => {
                if let Some((_, text)) = open.as_mut().and_then(|attributes| attributes.last_mut()) {
                    *text = String::from_utf8_lossy(value).into_owned();
                }
            }
            CallbackEvent::CloseStartTag { .. } => links.extend(open.take().and_then(Link::of)),
            _ => {}
        }
        None
    });
    let Ok(()) = Tokenizer::new_with_emitter(page, emitter).finish();
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_the_requested_attributes() {
        let page = "<html><a href='x.whl#sha256=1' data-yanked=\"bad &amp; ugly\" data-requires-python=&gt;=3>x<br>y</a><a>no</a>\
                    <!-- <a href=c>c</a> --><A HREF=z>Z</A>";
        let found = links(page, &["data-yanked", "data-requires-python"]);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].href, "x.whl#sha256=1");
        assert_eq!(found[0].attribute("data-yanked"), Some("bad & ugly"));
        assert_eq!(found[0].attribute("data-requires-python"), Some(">=3"));
        assert_eq!(found[1], Link { href: "z".to_owned(), attributes: Vec::new() });
    }

    #[test]
    fn attributes_count_once_and_in_the_tag_of_a_link() {
        let page = "<p href=p data-yanked=p></p data-yanked=p><a data-other=1 href=\" a \u{0}\" data-yanked href=b data-yanked=2 \
                    class></a href=c><a href=''></a><a href=unfinished";
        let found = links(page, &["data-yanked"]);
        let attributes = vec![("data-yanked", String::new())];
        assert_eq!(found, [Link { href: "a \u{fffd}".to_owned(), attributes }]);
    }

    #[test]
    fn text_between_tags_is_not_a_link() {
        assert_eq!(links("&lt;a href=x&gt; <a/href=y><b href=z>", &[]).len(), 1);
        assert!(links("", &[]).is_empty());
    }
}
