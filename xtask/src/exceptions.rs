//! What still breaks a rule of the whole: listed, so that nothing is added, and the list shrinks.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::finding::Report;

/// Where the list is, from the root of the tree.
pub(crate) const LIST: &str = "xtask/exceptions.toml";

/// The kinds of entries, as the headers in the list.
pub(crate) const CYCLES: &str = "cycles";
pub(crate) const IMPLS: &str = "impls";
pub(crate) const METHODS: &str = "methods";
pub(crate) const FIELDS: &str = "fields";
pub(crate) const DOCUMENTS: &str = "documents";

const KINDS: [&str; 5] = [CYCLES, IMPLS, METHODS, FIELDS, DOCUMENTS];

/// One entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Exception {
    pub(crate) kind: &'static str,
    /// The member of the workspace; empty for a document.
    pub(crate) owner: String,
    /// The type, with its module, or the document, from the root of the tree; empty for a cycle.
    pub(crate) name: String,
    /// The modules of a cycle, or those with `impl`s of the type.
    pub(crate) modules: BTreeSet<String>,
    pub(crate) line: usize,
}

/// Reads the list; what does not parse is reported.
pub(crate) fn parse(text: &str, report: &mut Report) -> Vec<Exception> {
    let table: Table = match text.parse() {
        Ok(table) => table,
        Err(error) => {
            let error: toml::de::Error = error;
            let what = error.message().lines().next().unwrap_or("does not parse").to_owned();
            report.add(LIST, 1, format!("{what}; mend the list"));
            return Vec::new();
        }
    };
    for key in table.keys().filter(|key| !KINDS.contains(&key.as_str())) {
        report.add(LIST, 1, format!("`{key}` is no kind of exception; take it out"));
    }
    let mut found = Vec::new();
    for kind in KINDS {
        let header = format!("[[{kind}]]");
        let lines = text.lines().enumerate().filter(|(_, line)| line.trim_end() == header);
        let entries = table.get(kind).and_then(Value::as_array);
        for (entry, (at, _)) in entries.into_iter().flatten().zip(lines) {
            match exception(kind, entry, at + 1) {
                Some(exception) => found.push(exception),
                None => {
                    let what = "an exception has `crate`, `type` (unless it is a cycle) and \
                        `modules` (for cycles and impls), or `file` alone (a document); mend it";
                    report.add(LIST, at + 1, what);
                }
            }
        }
    }
    found
}

fn exception(kind: &'static str, entry: &Value, line: usize) -> Option<Exception> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let list = |key: &str| -> Option<BTreeSet<String>> {
        let values = entry.get(key)?.as_array()?;
        values.iter().map(|value| value.as_str().map(str::to_owned)).collect()
    };
    let owner = if kind == DOCUMENTS { String::new() } else { text("crate")? };
    let name = match kind {
        CYCLES => String::new(),
        DOCUMENTS => text("file")?,
        _ => text("type")?,
    };
    let modules = if [CYCLES, IMPLS].contains(&kind) { list("modules")? } else { BTreeSet::new() };
    let parts = [owner.is_empty(), name.is_empty(), modules.is_empty()];
    let keys = parts.into_iter().filter(|is_empty| !is_empty).count();
    let exception = Exception { kind, owner, name, modules, line };
    (entry.as_table()?.len() == keys).then_some(exception)
}
