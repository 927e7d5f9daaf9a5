//! Documents lead somewhere, and from the README to each of them, by the index of its folder where
//! there is one.

use super::Rule;
use crate::finding::Report;
use crate::house::House;
use crate::tree::File;

pub(super) const RULE: Rule = Rule {
    name: "links",
    demand: "relative links in documents resolve; README.md, or the README.md of its folder, \
        names every document in docs/",
    check,
};

const README: &str = "README.md";

fn check(house: &House, report: &mut Report) {
    for file in house.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (line, target) in targets(file) {
            match resolve(&file.path, target) {
                Some(path) if house.has(&path) => {}
                _ => report.add(&file.path, line, format!("`{target}` leads nowhere; mend it")),
            }
        }
    }
    let Some(readme) = house.file(README) else { return };
    let is_document = |file: &&File| file.path.starts_with("docs/") && file.path.ends_with(".md");
    for document in house.files.iter().filter(is_document) {
        let is_named = readme.text.contains(&document.path)
            || index_of(house, &document.path).is_some_and(|index| leads_to(index, document));
        if !is_named {
            report.add(&document.path, 1, format!("{README} does not name it; add a link"));
        }
    }
}

/// The README of a document's own folder, where there is one and the document is not it.
fn index_of<'a>(house: &'a House, path: &str) -> Option<&'a File> {
    let (folder, name) = path.rsplit_once('/')?;
    (name != README).then(|| house.file(&format!("{folder}/{README}"))).flatten()
}

fn leads_to(index: &File, document: &File) -> bool {
    let mut paths = targets(index).into_iter().map(|(_, target)| resolve(&index.path, target));
    paths.any(|path| path.as_ref() == Some(&document.path))
}

/// Relative targets of inline links, outside code, without their anchors.
fn targets(file: &File) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (at, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for (start, mark) in line.match_indices("](") {
            if line[..start].matches('`').count() % 2 == 1 {
                continue;
            }
            let rest = &line[start + mark.len()..];
            let target = &rest[..rest.find([')', ' ']).unwrap_or(rest.len())];
            let target = target.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push((at + 1, target));
            }
        }
    }
    found
}

/// A path relative to the root; none when it leaves the tree.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    (!target.starts_with('/')).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for target in ["b.md", "../../a.md", "/a.md", "../docs/c.md#x"] {
            let text = format!("\n[x]({target})\n");
            let files = [("docs/a.md", text.as_str())];
            assert_eq!(places(&RULE, &files), ["docs/a.md:2"], "{target}");
        }
    }

    #[test]
    fn good_links_and_code_pass() {
        let text = "[a](../README.md) [b](a.md#x) [c](https://x.org/y) [d](#here) [e](../src/)\n\
            `[x](gone.md)`\n```\n[x](gone.md)\n```\n";
        let readme = "[a](docs/a.md)\n";
        let files = [("docs/a.md", text), ("README.md", readme), ("src/a.rs", "")];
        assert_eq!(places(&RULE, &files), [""; 0]);
    }

    #[test]
    fn a_document_that_the_readme_does_not_name_is_found() {
        assert_eq!(places(&RULE, &[("docs/a.md", ""), ("README.md", "x\n")]), ["docs/a.md:1"]);
    }

    #[test]
    fn a_folder_with_an_index_is_named_by_it() {
        let with = |index: &str, readme: &str| {
            let files = [("docs/x/a.md", ""), ("docs/x/README.md", index), ("README.md", readme)];
            places(&RULE, &files)
        };
        let (index, readme) = ("[a](a.md)\n", "[x](docs/x/README.md)\n");
        assert_eq!(with(index, readme), [""; 0]);
        assert_eq!(with("a.md\n", readme), ["docs/x/a.md:1"]);
        assert_eq!(with(index, "x\n"), ["docs/x/README.md:1"]);
    }
}
