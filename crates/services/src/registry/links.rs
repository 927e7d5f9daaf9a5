//! Web links as text (RFC 6690, CoRE Link Format; RFC 8288).

use crate::messaging::shown;

/// Most links of a document.
pub(crate) const MAX_LINKS: usize = 256;
/// Most attributes of a link.
const MAX_ATTRIBUTES: usize = 64;

/// A link: where it leads to, and what is said of it, in the order in which it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) target: String,
    /// Names in lower case; an attribute without a value has none.
    pub(crate) attributes: Vec<(String, Option<String>)>,
}

impl Link {
    /// A link without attributes.
    pub(crate) fn to(target: impl Into<String>) -> Self {
        Self { target: target.into(), attributes: Vec::new() }
    }

    /// The same with one more attribute.
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.attributes.push((name.to_owned(), Some(value.into())));
        self
    }

    /// The value of the first attribute with a name.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(of, _)| of == name);
        found.map(|(_, value)| value.as_deref().unwrap_or_default())
    }
}

/// Reads a document.
///
/// # Errors
/// A line with what is wrong and the byte at which it is.
pub(crate) fn parse(text: &str) -> Result<Vec<Link>, String> {
    let mut reader = Reader { text, at: 0 };
    let mut links = Vec::new();
    reader.space();
    while !reader.is_at_end() {
        if links.len() == MAX_LINKS {
            return Err(format!("over {MAX_LINKS} links; register fewer at once"));
        }
        links.push(reader.link()?);
        reader.space();
        if reader.is_at_end() {
            break;
        }
        reader.want(',')?;
        reader.space();
        if reader.is_at_end() {
            return Err(reader.wrong("a link behind ','"));
        }
    }
    Ok(links)
}

/// Writes a document.
pub(crate) fn write<'a>(links: impl IntoIterator<Item = &'a Link>) -> String {
    let mut out = String::new();
    for link in links {
        if !out.is_empty() {
            out.push(',');
        }
        out.push('<');
        out.push_str(&link.target);
        out.push('>');
        for (name, value) in &link.attributes {
            out.push(';');
            out.push_str(name);
            let Some(value) = value else { continue };
            out.push('=');
            // Numbers and tokens go bare where every reader takes them so.
            if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
                out.push_str(value);
                continue;
            }
            out.push('"');
            for character in value.chars() {
                if matches!(character, '"' | '\\') {
                    out.push('\\');
                }
                out.push(character);
            }
            out.push('"');
        }
    }
    out
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn wrong(&self, wanted: &str) -> String {
        let found = match self.rest().chars().next() {
            Some(character) => format!("'{}'", shown(&character.to_string())),
            None => "the end".to_owned(),
        };
        format!("byte {}: {found} where {wanted} belongs", self.at)
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_there = self.rest().starts_with(wanted);
        self.at += if is_there { wanted.len_utf8() } else { 0 };
        is_there
    }

    fn want(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) { Ok(()) } else { Err(self.wrong(&format!("'{wanted}'"))) }
    }

    fn while_of(&mut self, is_of: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let end = rest.find(|character| !is_of(character)).unwrap_or(rest.len());
        let found = rest.get(..end).unwrap_or_default().to_owned();
        self.at += end;
        found
    }

    fn link(&mut self) -> Result<Link, String> {
        self.want('<')?;
        let target = self.while_of(|one| !matches!(one, '>' | '<' | '"') && !one.is_control());
        self.want('>')?;
        let mut link = Link::to(target);
        loop {
            self.space();
            if !self.take(';') {
                return Ok(link);
            }
            self.space();
            if link.attributes.len() == MAX_ATTRIBUTES {
                return Err(format!("over {MAX_ATTRIBUTES} attributes of a link; give fewer"));
            }
            let name =
                self.while_of(|one| one.is_ascii_alphanumeric() || "!#$&+-.^_`|~*".contains(one));
            if name.is_empty() {
                return Err(self.wrong("the name of an attribute"));
            }
            self.space();
            let value = if self.take('=') {
                self.space();
                Some(self.value()?)
            } else {
                None
            };
            link.attributes.push((name.to_ascii_lowercase(), value));
        }
    }

    fn value(&mut self) -> Result<String, String> {
        if !self.take('"') {
            let value = self.while_of(|one| {
                !one.is_whitespace() && !one.is_control() && !matches!(one, ';' | ',' | '"' | '<')
            });
            return if value.is_empty() { Err(self.wrong("a value")) } else { Ok(value) };
        }
        let mut value = String::new();
        loop {
            let Some(character) = self.rest().chars().next() else {
                return Err(self.wrong("the end of a quoted value"));
            };
            self.at += character.len_utf8();
            match character {
                '"' => return Ok(value),
                '\\' => match self.rest().chars().next() {
                    Some(escaped) => {
                        self.at += escaped.len_utf8();
                        value.push(escaped);
                    }
                    None => return Err(self.wrong("the end of a quoted value")),
                },
                other => value.push(other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn documents_of_the_rfc_are_read() {
        // RFC 6690 §5.
        let text = "</sensors>;ct=40;title=\"Sensor Index\",</t>;anchor=\"/sensors/temp\"\n,\
                    </sensors/light>;rt=\"light-lux\";if=\"sensor\";obs";
        let links = parse(text).unwrap();
        assert_eq!(links.len(), 3);
        assert_eq!(links[0].value("title"), Some("Sensor Index"));
        assert_eq!(links[2].attributes[2], ("obs".to_owned(), None));
        assert_eq!(parse(" "), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for text in
            ["x", "<a", "<a>;", "<a>;b=", "<a>;b=\"c", "<a>;b=\"c\\", "<a>,", "<a> <b>", ",<a>"]
        {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with("byte "), "{text}: {error}");
        }
        assert!(parse(&vec!["<a>"; 256].join(",")).is_ok());
        assert!(parse(&vec!["<a>"; 257].join(",")).is_err());
        assert!(parse(&format!("<a>{}", ";b".repeat(65))).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_it_was(
            target in "[a-z/:?=&]{0,20}",
            attributes in prop::collection::vec(
                ("[a-z]{1,8}", prop::option::of("[ -~äß]{0,20}")), 0..8),
        ) {
            let link = Link { target, attributes };
            let text = write([&link, &link]);
            prop_assert_eq!(parse(&text), Ok(vec![link.clone(), link]));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[<>;,=\"\\\\ a-zé]{0,60}") {
            if let Ok(links) = parse(&text) {
                prop_assert_eq!(parse(&write(&links)), Ok(links));
            }
        }
    }
}
