//! Attributes of an element as tokens (§5.8.3).

use proto::wbxml::global;

use super::encode::Body;
use super::opaque::Kind;
use super::table::Code;
use crate::Error;

impl Body<'_> {
    /// An attribute with its value; `codes` are those of its name, the longest value first.
    pub(super) fn attribute(
        &mut self,
        name: &str,
        value: &str,
        codes: &[(String, Code)],
    ) -> Result<(), Error> {
        let found = codes.iter().find(|(begin, _)| value.starts_with(begin.as_str()));
        let Some((begin, code)) = found else {
            self.strings.literal(global::LITERAL, name, &mut self.bytes)?;
            return self.value(value);
        };
        let start = self.table.and_then(|table| table.start(code.page, code.code));
        let opaque = start.map_or(Kind::Any, |start| start.opaque);
        self.attribute_token(*code);
        match opaque.encode(value).filter(|_| begin.is_empty()) {
            Some(data) => self.opaque(&data),
            None => self.value(&value[begin.len()..]),
        }
    }

    fn attribute_token(&mut self, code: Code) {
        if code.page != self.attribute_page {
            self.attribute_page = code.page;
            self.bytes.extend([global::SWITCH_PAGE, code.page]);
        }
        self.bytes.push(code.code);
    }

    /// A value, or the rest of one: tokens where they are shorter than strings.
    fn value(&mut self, value: &str) -> Result<(), Error> {
        let table = self.table.filter(|table| table.has_values());
        if table.is_none() {
            return self.text_between(value, 0, value.len());
        }
        let (mut begin, mut at) = (0, 0);
        while at < value.len() {
            let found = table.and_then(|table| {
                let mut codes = table.value_codes(value.as_bytes()[at]).iter();
                codes.find(|(text, code)| {
                    // An inline string has two bytes beside its text, a switch has two as well.
                    let ends = at + text.len() == value.len();
                    let split = if at > begin && !ends { 2 } else { 0 };
                    let switch = if code.page == self.attribute_page { 0 } else { 4 };
                    text.len() > 1 + split + switch
                        && value.as_bytes()[at..].starts_with(text.as_bytes())
                })
            });
            let Some((text, code)) = found else {
                at += 1;
                continue;
            };
            let (len, code) = (text.len(), *code);
            self.text_between(value, begin, at)?;
            self.attribute_token(code);
            at += len;
            begin = at;
        }
        self.text_between(value, begin, at)
    }

    fn text_between(&mut self, value: &str, begin: usize, end: usize) -> Result<(), Error> {
        match value.get(begin..end) {
            Some(text) if !text.is_empty() => self.strings.text(text, &mut self.bytes),
            _ => Ok(()),
        }
    }
}
