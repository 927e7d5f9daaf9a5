//! What Canonical EXI 1.0 does with declarations and white space.

use super::{Driver, Start};
use crate::exi::{bits::Fault, grammar::WhiteSpace, lexical};
use crate::xml::Scanner;

impl Driver {
    /// The declarations of an element by their prefixes (Canonical EXI 1.0 §4.4), and those that it
    /// inherits if it is read alone.
    pub(super) fn sorted_namespaces(
        &mut self,
        start: &Start<'_>,
        scanner: &Scanner,
        alone: bool,
    ) -> Result<(), Fault> {
        let mut sorted: Vec<(&str, u32)> = Vec::new();
        // The prefix xml is declared without being so.
        for declared in scanner.declarations().iter().filter(|one| one.prefix(start) != "xml") {
            sorted.push((declared.prefix(start), self.uri(declared.uri, scanner)));
        }
        if alone {
            for (prefix, uri) in scanner.scope() {
                sorted.push((prefix, self.uri(uri, scanner)));
            }
        }
        // The innermost of several comes first and stays.
        sorted.sort_by_key(|&(prefix, _)| prefix);
        sorted.dedup_by_key(|&mut (prefix, _)| prefix);
        let own = scanner.declarations().len();
        let nothing = |&(prefix, uri): &(&str, u32)| own == 0 && prefix.is_empty() && uri == 0;
        for (prefix, uri) in sorted.iter().copied().filter(|one| !nothing(one)) {
            self.walk.namespace(uri, prefix, prefix == start.prefix)?;
        }
        Ok(())
    }

    /// Text before a tag (Canonical EXI 1.0 §4.3): what stands between a start and its end tag as
    /// its type wants it, blanks between tags not at all, unless they are to be preserved.
    pub(super) fn canonical_text(&mut self, text: &str, simple: bool) -> Result<(), Fault> {
        if self.depth <= self.around && self.around > 0 {
            return Ok(());
        }
        let preserve = self.spaces.last().is_some_and(|space| space.1);
        if preserve || self.options.preserve.lexical {
            self.walk.set_verbatim(true);
            let fits = !self.options.strict || self.walk.takes_text();
            let blank = text.bytes().all(lexical::is_space);
            let written = if fits || !blank { self.walk.characters(text) } else { Ok(()) };
            self.walk.set_verbatim(false);
            return written;
        }
        let facet = self.walk.white_space().filter(|&facet| facet != WhiteSpace::Preserve);
        if let Some(facet) = facet {
            let normal = lexical::normalise(text, facet);
            let text = normal.as_deref().unwrap_or(text);
            // §4.3.1: the empty string only where the grammar wants it, which its end will see.
            return if text.is_empty() { Ok(()) } else { self.walk.characters(text) };
        }
        let blank = text.bytes().all(lexical::is_space);
        let fits = !self.options.strict || self.walk.takes_text();
        if !blank || (simple && fits) { self.walk.characters(text) } else { Ok(()) }
    }
}
