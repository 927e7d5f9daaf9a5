//! The parts of an XML document in their order: enough for files of tracks.

/// Most elements within each other.
const MAX_DEPTH: usize = 32;

/// One part of a document.
#[derive(Debug, PartialEq)]
pub(super) enum Part<'a> {
    /// An element begins. Its name is without a prefix.
    Start(&'a str, Vec<(&'a str, String)>),
    /// The last element that began ends.
    End(&'a str),
    /// Text with its references resolved.
    Text(String),
}

/// Reads a document part by part.
pub(super) struct Reader<'a> {
    rest: &'a str,
    line: usize,
    open: Vec<&'a str>,
    /// The element that was begun and ended by one tag.
    ended: Option<&'a str>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let rest = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self { rest, line: 1, open: Vec::new(), ended: None }
    }

    /// The line of the last part.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// The next part; none at the end of a whole document.
    pub(super) fn next(&mut self) -> Result<Option<Part<'a>>, String> {
        if let Some(name) = self.ended.take() {
            return Ok(Some(Part::End(name)));
        }
        loop {
            if self.rest.is_empty() {
                return match self.open.last() {
                    Some(name) => Err(format!("ends within <{name}>: the file is cut")),
                    None => Ok(None),
                };
            }
            if let Some(text) = self.text()? {
                return Ok(Some(Part::Text(text)));
            }
            if self.rest.starts_with("<!--") {
                self.take_until("-->")?;
            } else if self.rest.starts_with("<![CDATA[") {
                let whole = self.take_until("]]>")?;
                return Ok(Some(Part::Text(whole[9..whole.len() - 3].to_owned())));
            } else if self.rest.starts_with("<!") {
                return Err("has a document type: leave it out".to_owned());
            } else if self.rest.starts_with("<?") {
                self.take_until("?>")?;
            } else if self.rest.starts_with('<') {
                return self.tag().map(Some);
            }
        }
    }

    /// Text up to the next tag, if there is any.
    fn text(&mut self) -> Result<Option<String>, String> {
        let end = self.rest.find('<').unwrap_or(self.rest.len());
        if end == 0 {
            return Ok(None);
        }
        let text = self.take(end);
        if self.open.is_empty() && !text.trim().is_empty() {
            return Err("has text outside of its elements".to_owned());
        }
        resolve(text).map(Some)
    }

    fn tag(&mut self) -> Result<Part<'a>, String> {
        let tag = self.take_until(">")?;
        let inside = &tag[1..tag.len() - 1];
        if let Some(name) = inside.strip_prefix('/') {
            let name = local(name.trim());
            return match self.open.pop() {
                Some(open) if open == name => Ok(Part::End(name)),
                Some(open) => Err(format!("</{name}> ends <{open}>")),
                None => Err(format!("</{name}> ends nothing")),
            };
        }
        let (inside, is_whole) = match inside.strip_suffix('/') {
            Some(inside) => (inside, true),
            None => (inside, false),
        };
        let end = inside.find(char::is_whitespace).unwrap_or(inside.len());
        let (name, rest) = inside.split_at(end);
        if name.is_empty() {
            return Err("has a tag without a name".to_owned());
        }
        let name = local(name);
        let attributes = attributes(rest)?;
        if is_whole {
            self.ended = Some(name);
        } else if self.open.len() == MAX_DEPTH {
            return Err(format!("has more than {MAX_DEPTH} elements within each other"));
        } else {
            self.open.push(name);
        }
        Ok(Part::Start(name, attributes))
    }

    fn take_until(&mut self, end: &str) -> Result<&'a str, String> {
        let at = self.rest.find(end).ok_or_else(|| format!("has no '{end}': the file is cut"))?;
        Ok(self.take(at + end.len()))
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.bytes().filter(|byte| *byte == b'\n').count();
        self.rest = rest;
        taken
    }
}

/// A name without its prefix.
fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

fn attributes(mut rest: &str) -> Result<Vec<(&str, String)>, String> {
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(found);
        }
        let (name, value) = rest.split_once('=').ok_or("has an attribute without a value")?;
        let value = value.trim_start();
        let quote = value.chars().next().filter(|quote| "\"'".contains(*quote));
        let quote = quote.ok_or("has an attribute without quotes")?;
        let (value, after) =
            value[1..].split_once(quote).ok_or("has an attribute without its second quote")?;
        found.push((local(name.trim()), resolve(value)?));
        rest = after;
    }
}

/// Text with references to characters resolved.
fn resolve(text: &str) -> Result<String, String> {
    let mut resolved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        resolved.push_str(before);
        let (name, after) = after.split_once(';').ok_or("has a & that is no reference")?;
        resolved.push(character(name).ok_or_else(|| format!("has a reference &{name};"))?);
        rest = after;
    }
    resolved.push_str(rest);
    Ok(resolved)
}

fn character(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let number = match number.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(number)
        }
    }
}
