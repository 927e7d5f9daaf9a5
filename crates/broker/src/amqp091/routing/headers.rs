//! Bindings of a headers exchange (AMQP 0.9.1 §3.1.3.4).

use proto::amqp091::{Table, Value};

/// Whether a binding's arguments fit a message's headers: all of them, or any, as its argument
/// `x-match` says. Those that begin with `x-` are not compared, unless it says `…-with-x`.
pub(super) fn is_match(arguments: Table<'_>, headers: Option<Table<'_>>) -> bool {
    let mode = arguments.get("x-match");
    let mode = mode.as_ref().and_then(Value::as_text).unwrap_or("all");
    let is_compared = |name: &str| match mode.ends_with("-with-x") {
        true => name != "x-match",
        false => !name.starts_with("x-"),
    };
    let fits = |(name, wanted): (&str, Value<'_>)| {
        let found = headers.and_then(|headers| headers.get(name));
        // A header that only has to be there has a binding without a value.
        found.is_some_and(|found| wanted == Value::Void || is_same(&wanted, &found))
    };
    let mut compared = arguments.iter().filter(|(name, _)| is_compared(name));
    match mode.starts_with("any") {
        true => compared.any(fits),
        false => compared.all(fits),
    }
}

/// Numbers are the same whatever their width.
fn is_same(one: &Value<'_>, other: &Value<'_>) -> bool {
    match (one.as_integer(), other.as_integer()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}
