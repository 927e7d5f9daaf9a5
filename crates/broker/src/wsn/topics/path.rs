//! Paths of topic expressions (WS-Topics 1.3, the grammars of its schema).

use codec::xml::is_nc_name;

use super::{Dialect, Refused};

/// What a step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test<'a> {
    /// A topic of this name.
    Name { prefix: Option<&'a str>, local: &'a str },
    /// Any, `*`.
    Any,
    /// The topic itself, `.`.
    Itself,
}

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step<'a> {
    /// `//` stands before it.
    pub(super) deep: bool,
    pub(super) test: Test<'a>,
}

/// `TopicPath`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path<'a> {
    /// The root's prefix, which may be empty.
    pub(super) prefix: &'a str,
    pub(super) steps: Vec<Step<'a>>,
}

const BROKEN: Refused = Refused::Invalid("not an expression of its dialect");

impl<'a> Path<'a> {
    pub(super) fn parse(dialect: Dialect, text: &'a str) -> Result<Self, Refused> {
        let is_full = dialect == Dialect::Full;
        // The prefix stands before the slashes of the root.
        let (prefix, mut rest) = match text.split_once(':') {
            Some((prefix, rest)) if !prefix.contains('/') => {
                if !is_nc_name(prefix) {
                    return Err(BROKEN);
                }
                (prefix, rest)
            }
            _ => ("", text),
        };
        let mut deep = false;
        if is_full && let Some(behind) = rest.strip_prefix("//") {
            (deep, rest) = (true, behind);
        }
        let mut steps = Vec::new();
        loop {
            let (step, behind) = match rest.split_once('/') {
                Some((step, behind)) => (step, Some(behind)),
                None => (rest, None),
            };
            let is_root = steps.is_empty();
            steps.push(Step { deep, test: test(step, is_full, is_root)? });
            let Some(behind) = behind else { break };
            if dialect == Dialect::Simple {
                return Err(Refused::Invalid("the dialect Simple names a root topic"));
            }
            deep = is_full && behind.starts_with('/');
            rest = if deep { behind.get(1..).unwrap_or("") } else { behind };
        }
        Ok(Self { prefix, steps })
    }
}

fn test(step: &str, is_full: bool, is_root: bool) -> Result<Test<'_>, Refused> {
    match step {
        "*" if is_full => return Ok(Test::Any),
        "." if is_full && !is_root => return Ok(Test::Itself),
        _ => {}
    }
    let (prefix, local) = match step.split_once(':') {
        Some((prefix, local)) if !is_root => (Some(prefix), local),
        Some(_) => return Err(BROKEN),
        None => (None, step),
    };
    if !is_nc_name(local) || prefix.is_some_and(|prefix| !is_nc_name(prefix)) {
        return Err(BROKEN);
    }
    Ok(Test::Name { prefix, local })
}
