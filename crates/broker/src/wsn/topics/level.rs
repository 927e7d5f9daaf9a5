//! Levels of topics as names of XML, and namespaces as levels.

use codec::xml::is_nc_name;

/// An empty level: no other level can have this character.
const EMPTY: &str = "_x0000_";
/// Hexadecimal digits of an escape.
const MIN_DIGITS: usize = 4;
const MAX_DIGITS: usize = 6;

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte)
}

/// Whether a character may stand in a name, at its begin or behind.
fn is_plain(char: char, at_begin: bool) -> bool {
    if char.is_ascii() {
        let byte = char as u8;
        return byte.is_ascii_alphabetic()
            || byte == b'_'
            || !at_begin && (byte.is_ascii_digit() || byte == b'-' || byte == b'.');
    }
    let mut name = [b'_'; 5];
    let behind = name.split_first_chunk_mut::<1>().map_or(&mut [][..], |(_, behind)| behind);
    let len = char.encode_utf8(behind).len();
    let name = if at_begin { name.get(1..=len) } else { name.get(..=len) };
    name.and_then(|name| std::str::from_utf8(name).ok()).is_some_and(is_nc_name)
}

/// A level as a name: `_xHHHH_` stands for each character that a name may not have there, and for a
/// `_` that would be read as the begin of such.
pub(super) fn escape(level: &str) -> String {
    if level.is_empty() {
        return EMPTY.to_owned();
    }
    let mut name = String::with_capacity(level.len());
    for (at, char) in level.char_indices() {
        let rest = level.get(at + char.len_utf8()..).unwrap_or("");
        if is_plain(char, at == 0) && !(char == '_' && opens_escape(rest)) {
            name.push(char);
        } else {
            name.push_str(&format!("_x{:04X}_", u32::from(char)));
        }
    }
    name
}

/// Whether what follows a `_` would make an escape of it once it is written.
fn opens_escape(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix('x') else { return false };
    let count = rest.bytes().take_while(|byte| is_digit(*byte)).count();
    if !(MIN_DIGITS..=MAX_DIGITS).contains(&count) {
        return false;
    }
    let behind = rest.get(count..).and_then(|rest| rest.chars().next());
    behind.is_some_and(|char| char == '_' || !is_plain(char, false))
}

/// The level that a name stands for; `None` where [`escape`] would write it in another way.
pub(super) fn unescape(name: &str) -> Option<String> {
    if name == EMPTY {
        return Some(String::new());
    }
    let mut level = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("_x") {
        let (before, found) = rest.split_at_checked(at)?;
        level.push_str(before);
        let digits = found.get(2..)?;
        let count = digits.bytes().take_while(|byte| is_digit(*byte)).count();
        let is_escape = (MIN_DIGITS..=MAX_DIGITS).contains(&count)
            && digits.as_bytes().get(count) == Some(&b'_');
        if is_escape {
            let code = u32::from_str_radix(digits.get(..count)?, 16).ok()?;
            level.push(char::from_u32(code).filter(|char| *char != '\0')?);
            rest = digits.get(count + 1..)?;
        } else {
            level.push('_');
            rest = found.get(1..)?;
        }
    }
    level.push_str(rest);
    (escape(&level) == name && is_nc_name(name)).then_some(level)
}

/// What is written as `%HH` in the level of a namespace.
const ESCAPED: [char; 6] = ['%', '/', '+', '#', '{', '}'];

/// A namespace as the first level of its topics.
pub(super) fn namespace_level(uri: &str) -> String {
    let mut level = String::with_capacity(uri.len() + 2);
    level.push('{');
    for char in uri.chars() {
        if ESCAPED.contains(&char) {
            level.push_str(&format!("%{:02X}", u32::from(char)));
        } else {
            level.push(char);
        }
    }
    level.push('}');
    level
}

/// The namespace that a level is; `None` where [`namespace_level`] would write it in another way.
pub(super) fn of_namespace_level(level: &str) -> Option<String> {
    let inner = level.strip_prefix('{')?.strip_suffix('}')?;
    let mut uri = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((before, behind)) = rest.split_once('%') {
        uri.push_str(before);
        let code = u32::from_str_radix(behind.get(..2)?, 16).ok()?;
        uri.push(char::from_u32(code)?);
        rest = behind.get(2..)?;
    }
    uri.push_str(rest);
    let is_text = codec::xml::is_text(&uri);
    (!uri.is_empty() && is_text && namespace_level(&uri) == level).then_some(uri)
}

/// A child topic of another namespace than its root's as a level.
pub(super) fn child_of_namespace(uri: &str, local: &str) -> String {
    if uri.is_empty() {
        return local.to_owned();
    }
    namespace_level(uri) + local
}

/// The namespace and the name of a child, where the level says both.
pub(super) fn of_child(level: &str) -> Option<(String, &str)> {
    let end = level.find('}')? + 1;
    let (namespace, local) = level.split_at_checked(end)?;
    Some((of_namespace_level(namespace)?, local)).filter(|_| !local.is_empty())
}
