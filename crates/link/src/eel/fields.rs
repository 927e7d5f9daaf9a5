//! The fields of a line.

use crate::error::quoted;
use crate::losses::NodeId;
use std::time::Duration;

/// Greatest time in seconds: beyond a year nothing is emulated.
const MAX_TIME_S: f64 = 366.0 * 86_400.0;

/// Greatest number of a node; 65535 stands for all of them.
const MAX_NODE: NodeId = 65_534;

/// A field and what is wrong with it.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) field: String,
    pub(super) what: String,
}

impl Trouble {
    pub(super) fn new(field: &str, what: String) -> Self {
        Self { field: field.to_owned(), what }
    }
}

/// A line that is neither empty nor a comment.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) at: Duration,
    pub(super) node: NodeId,
    pub(super) event: String,
    pub(super) arguments: Vec<String>,
}

/// What an event says of another node.
pub(super) struct Entry {
    pub(super) node: NodeId,
    /// How messages name it.
    pub(super) field: String,
    /// What follows the node.
    pub(super) values: Vec<String>,
}

impl Line {
    pub(super) fn parse(text: &str) -> Result<Option<Self>, Trouble> {
        let mut words = words(text)?.into_iter();
        let Some(time) = words.next() else { return Ok(None) };
        let seconds = time.parse().ok().filter(|seconds| (0.0..=MAX_TIME_S).contains(seconds));
        let at = Duration::from_secs_f64(seconds.ok_or_else(|| {
            let what = format!("{} is no time: give 0 to {MAX_TIME_S} seconds", quoted(&time));
            Trouble::new("time", what)
        })?);
        let missing =
            |field| Trouble::new(field, "is missing: give 'time nem:N event …'".to_owned());
        let module = words.next().ok_or_else(|| missing("module"))?;
        let node = node(&module).map_err(|what| Trouble::new("module", what))?;
        let event = words.next().ok_or_else(|| missing("event"))?;
        Ok(Some(Self { at, node, event, arguments: words.collect() }))
    }
}

/// Words between spaces and tabs, up to a comment; quotes hold spaces and `#`.
fn words(text: &str) -> Result<Vec<String>, Trouble> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), None::<String>, false);
    for c in text.chars() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            '#' if !is_quoted => break,
            c if c.is_whitespace() && !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    if is_quoted {
        return Err(Trouble::new("", "has a quote without its second one".to_owned()));
    }
    words.extend(word);
    Ok(words)
}

/// `nem:N`.
fn node(text: &str) -> Result<NodeId, String> {
    let number = text.strip_prefix("nem:").and_then(|number| number.parse().ok());
    number
        .filter(|node| (1..=MAX_NODE).contains(node))
        .ok_or_else(|| format!("{} is no node: give nem:1 to nem:{MAX_NODE}", quoted(text)))
}

/// The entries of an event about other nodes: at least one.
pub(super) fn entries(event: &str, line: &Line) -> Result<Vec<Entry>, Trouble> {
    if line.arguments.is_empty() {
        return Err(Trouble::new(event, "has no entry: give 'nem:N,…'".to_owned()));
    }
    let entry = |argument: &String| {
        let field = format!("{event} {argument}");
        let mut parts = argument.split(',').map(str::to_owned);
        let other = parts.next().unwrap_or_default();
        let node = node(&other).map_err(|what| Trouble::new(&field, what))?;
        if node == line.node {
            let what = "is about the node itself: name another one".to_owned();
            return Err(Trouble::new(&field, what));
        }
        Ok(Entry { node, field, values: parts.collect() })
    };
    line.arguments.iter().map(entry).collect()
}

/// As many numbers as the event asks for.
pub(super) fn values(
    field: &str,
    texts: &[String],
    least: usize,
    greatest: usize,
) -> Result<Vec<f64>, Trouble> {
    if !(least..=greatest).contains(&texts.len()) {
        let wanted =
            if least == greatest { least.to_string() } else { format!("{least} to {greatest}") };
        let what = format!("has {} values after the node: give {wanted}", texts.len());
        return Err(Trouble::new(field, what));
    }
    texts.iter().map(|text| number(field, text)).collect()
}

/// Three numbers separated by commas.
pub(super) fn numbers(field: &str, text: &str) -> Result<[f64; 3], Trouble> {
    let numbers: Vec<f64> =
        text.split(',').map(|text| number(field, text)).collect::<Result<_, _>>()?;
    let count = numbers.len();
    numbers.try_into().map_err(|_| {
        Trouble::new(field, format!("has {count} values where there must be 3: {}", quoted(text)))
    })
}

fn number(field: &str, text: &str) -> Result<f64, Trouble> {
    let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| {
        let what = match text.trim() {
            "" => "has a gap: a number is missing between commas".to_owned(),
            text => format!("{} is no number", quoted(text)),
        };
        Trouble::new(field, what)
    })
}
