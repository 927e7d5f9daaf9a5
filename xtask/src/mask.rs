//! Rust text with comments and the insides of literals blanked, so that a search sees only code.
//! Every byte keeps its place.

/// A comment's line (from 1) and text with its marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// The code alone, as long as `text`, and the comments that were blanked.
pub(crate) fn mask(text: &str) -> (String, Vec<Comment>) {
    let mut masker = Masker { text, out: Vec::with_capacity(text.len()), at: 0, comments: vec![] };
    while masker.at < text.len() {
        masker.step();
    }
    (String::from_utf8_lossy(&masker.out).into_owned(), masker.comments)
}

struct Masker<'a> {
    text: &'a str,
    out: Vec<u8>,
    at: usize,
    comments: Vec<Comment>,
}

impl Masker<'_> {
    fn step(&mut self) {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return };
        if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            self.comment(end);
        } else if rest.starts_with("/*") {
            self.comment(block_comment_len(rest));
        } else if first == '"' {
            self.literal(0, string_len(rest));
        } else if first == '\'' {
            match char_len(rest) {
                Some(len) => self.literal(0, len),
                None => self.keep(1),
            }
        } else if first.is_alphabetic() || first == '_' {
            self.word(rest);
        } else {
            self.keep(first.len_utf8());
        }
    }

    /// An identifier, or the prefix of a literal (`b"`, `r#"`, `b'`).
    fn word(&mut self, rest: &str) {
        let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, after) = rest.split_at(len);
        let raw = matches!(word, "r" | "br" | "cr");
        let hashes = after.len() - after.trim_start_matches('#').len();
        if raw && after[hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let inner = &after[hashes + 1..];
            let inner_len = inner.find(&close).map_or(inner.len(), |end| end + close.len());
            self.literal(len, hashes + 1 + inner_len);
        } else if matches!(word, "b" | "c") && after.starts_with('"') {
            self.literal(len, string_len(after));
        } else if let ("b", Some(char_len)) = (word, char_len(after)) {
            self.literal(len, char_len);
        } else {
            self.keep(len);
        }
    }

    fn keep(&mut self, len: usize) {
        self.out.extend_from_slice(&self.text.as_bytes()[self.at..self.at + len]);
        self.at += len;
    }

    fn blank(&mut self, len: usize) {
        let bytes = &self.text.as_bytes()[self.at..self.at + len];
        self.out.extend(bytes.iter().map(|&byte| if byte == b'\n' { b'\n' } else { b' ' }));
        self.at += len;
    }

    /// Keeps the prefix and one quote at each end, blanks what is between.
    fn literal(&mut self, prefix: usize, len: usize) {
        self.keep(prefix);
        let quote = self.text.as_bytes().get(self.at).copied().filter(|&byte| byte != b'#');
        let end = self.out.len() + len;
        let start = self.out.len();
        self.blank(len);
        if len >= 2 {
            self.out[start] = quote.unwrap_or(b'"');
            self.out[end - 1] = self.out[start];
        }
    }

    fn comment(&mut self, len: usize) {
        let line = 1 + self.text[..self.at].matches('\n').count();
        for (offset, text) in self.text[self.at..self.at + len].lines().enumerate() {
            self.comments.push(Comment { line: line + offset, text: text.to_owned() });
        }
        self.blank(len);
    }
}

fn block_comment_len(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0_usize, 0_usize);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn string_len(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Length of the character literal that `rest` begins with; none when it is a lifetime.
fn char_len(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    if let Some(escape) = inner.strip_prefix('\\') {
        let first = escape.chars().next()?.len_utf8();
        return escape[first..].find('\'').map(|end| 2 + first + end + 1);
    }
    let first = inner.chars().next()?.len_utf8();
    inner[first..].starts_with('\'').then_some(1 + first + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_are_blanked_in_place() {
        let text = "a(\"x{\\\"y\"); // {tail}\n/* {\n */ b";
        let (code, comments) = mask(text);
        assert_eq!(code, "a(\"     \");          \n    \n    b");
        assert_eq!(comments[0], Comment { line: 1, text: "// {tail}".into() });
        assert_eq!(comments[1].line, 2);
    }

    #[test]
    fn raw_strings_end_at_their_hashes() {
        let (code, _) = mask("r#\"a\"{\"# + br\"}\"");
        assert_eq!(code.len(), 16);
        assert!(!code.contains(['{', '}']), "{code}");
        assert!(code.contains('+'));
    }

    #[test]
    fn lifetimes_are_code_and_characters_are_not() {
        let (code, _) = mask("fn f<'a>(x: &'a str) { g('{', b'}', '\\'', '\\u{7d}') }");
        assert_eq!(code.matches('{').count(), 1, "{code}");
        assert_eq!(code.matches('}').count(), 1, "{code}");
        assert!(code.contains("<'a>"));
    }

    #[test]
    fn nested_block_comments_and_open_ends_do_not_hang_or_panic() {
        assert_eq!(mask("/* /* */ x */ y").0.trim(), "y");
        for open in ["\"abc", "/* abc", "r#\"abc", "'", "b'", "'\\", "/*", "é'é"] {
            assert_eq!(mask(open).0.len(), open.len(), "{open}");
        }
    }
}
