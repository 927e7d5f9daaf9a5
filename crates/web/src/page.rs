//! What all pages have in common.

use crate::assets;
pub use report::escaped;

/// A word as a shell reads it: in quotes where it would be taken for something else.
#[must_use]
pub fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The areas of the interface, in the order of the navigation.
pub const AREAS: &[(&str, &str)] = &[("/", "Links"), ("/runs", "Runs"), ("/results", "Results")];

/// What a page is made of.
#[derive(Debug)]
pub struct Page<'a> {
    /// What stands in the title and above it all.
    pub title: &'a str,
    /// The address of the area that it belongs to.
    pub area: &'a str,
    /// Its module, by the name of the asset.
    pub script: &'a str,
    /// How the same is done from a shell.
    pub command: &'a str,
    /// Markup of the rest.
    pub body: &'a str,
}

impl Page<'_> {
    /// The whole document.
    #[must_use]
    pub fn html(&self) -> String {
        let Self { title, area, script, command, body } = self;
        let (title, command, folder) = (escaped(title), escaped(command), assets::folder());
        let links: String = AREAS
            .iter()
            .map(|(address, name)| {
                let current = if address == area { " aria-current=\"page\"" } else { "" };
                format!("<a href=\"{address}\"{current}>{name}</a>\n")
            })
            .collect();
        let command = match command.as_str() {
            "" => String::new(),
            text => format!(
                "<p class=\"shell\">The same from a shell: <code id=\"shell\">{text}</code> \
                 <button type=\"button\" data-copy=\"shell\">Copy</button></p>\n"
            ),
        };
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title} · longwire</title>\n\
             <link rel=\"icon\" href=\"{folder}/icon.svg\">\n\
             <link rel=\"stylesheet\" href=\"{folder}/style.css\">\n\
             <script type=\"module\" src=\"{folder}/{script}\"></script>\n</head>\n<body>\n\
             <header><a class=\"skip\" href=\"#main\">To the contents</a>\n\
             <span class=\"brand\">longwire</span>\n\
             <nav aria-label=\"Areas\">\n{links}</nav></header>\n\
             <main id=\"main\">\n<h1>{title}</h1>\n\
             <p id=\"said\" role=\"status\"></p>\n<p id=\"refused\" role=\"alert\"></p>\n\
             {body}\n{command}</main>\n</body>\n</html>\n"
        )
    }
}

/// A page that says why there is none.
#[must_use]
pub fn refusal(title: &str, detail: &str) -> String {
    let body = format!("<p>{}</p>", escaped(detail));
    Page { title, area: "", script: "common.js", command: "", body: &body }.html()
}

/// A name as part of an address: all but unreserved characters in per cent (RFC 3986 §2.1, §2.3).
#[must_use]
pub fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text += &format!("%{byte:02X}");
        }
    }
    text
}

/// The reverse of [`encoded`]; `None` for what is no text of that kind.
#[must_use]
pub fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(16 * high + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// The parameters of a query, decoded; `+` stands for a space as forms have it.
#[must_use]
pub fn query(text: &str) -> Vec<(String, String)> {
    let pair = |one: &str| {
        let (key, value) = one.split_once('=').unwrap_or((one, ""));
        let plain = |part: &str| decoded(&part.replace('+', " "));
        Some((plain(key)?, plain(value)?))
    };
    text.split('&').filter(|one| !one.is_empty()).filter_map(pair).collect()
}

/// The value of a parameter of a query.
#[must_use]
pub fn parameter<'a>(query: &'a [(String, String)], key: &str) -> Option<&'a str> {
    query.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_markup_stay_names() {
        let page = Page {
            title: "<script>",
            area: "/",
            script: "links.js",
            command: "longwire lab set 'x\"'",
            body: "<p>body</p>",
        };
        let html = page.html();
        assert!(html.contains("<h1>&lt;script&gt;</h1>") && html.contains("set &apos;x&quot;"));
        assert!(html.contains("<a href=\"/\" aria-current=\"page\">Links</a>"));
        assert_eq!(html.matches("<script").count(), 1);
        assert!(!html.contains(" style=") && !html.contains(" onclick="));
    }

    #[test]
    fn addresses_are_read_as_they_were_written() {
        for name in ["field", "a b/c?d#e&f=g", "é", "%41", "+"] {
            assert_eq!(decoded(&encoded(name)).as_deref(), Some(name));
            let pairs = query(&format!("x=1&name={}", encoded(name)));
            assert_eq!(parameter(&pairs, "name"), Some(name));
        }
        assert_eq!(decoded("%4"), None);
        assert_eq!(decoded("%zz"), None);
        assert_eq!(decoded("%ff"), None);
        assert_eq!(parameter(&query("a=b+c&&d"), "a"), Some("b c"));
        assert_eq!(parameter(&query("d"), "d"), Some(""));
    }
}
