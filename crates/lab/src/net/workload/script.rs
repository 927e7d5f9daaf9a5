//! What became of a scenario's script: its messages by receiver, and what must be true of them.

use std::time::Duration;

use link::net::Scenario;
use record::net::{NetCheck, NetMessage};

use super::Begun;
use crate::net::movement::Movement;

/// The check that none came twice.
pub(super) const ONCE: &str = "each message came once at most";

/// The id of a message of the script.
pub(super) fn id(number: usize) -> String {
    format!("m{:05}", number + 1)
}

/// What is known of a message for one receiver.
pub(super) struct Arrival<'a> {
    /// When it was given to its sender's program, since 1970; none for one that was not.
    pub(super) sent: Option<Duration>,
    /// Bytes that were given.
    pub(super) bytes: usize,
    /// Whenever it came.
    pub(super) came: &'a [Duration],
    /// The word for why it did not come, where it did not.
    pub(super) lost: &'a str,
}

/// All messages of the script, each once for each receiver; `arrival` is asked by the message's
/// number and the receiver's host.
pub(super) fn outcomes<'a>(
    scenario: &Scenario,
    movement: &Movement,
    begun: &Begun,
    arrival: impl Fn(usize, usize) -> Arrival<'a>,
) -> Vec<NetMessage> {
    // What comes after the scenario's end, while hosts are asked one by one, has not come.
    let end = begun.unix + scenario.duration;
    let name = |node: u16| scenario.node(node).map_or_else(String::new, |node| node.name.clone());
    let mut messages = Vec::new();
    for (number, message) in scenario.messages.iter().enumerate() {
        for (to, way) in movement.ways.get(number).into_iter().flatten() {
            let Arrival { sent, bytes, came, lost } =
                arrival(number, usize::from(*to).saturating_sub(1));
            let first = came.iter().min().filter(|at| **at <= end);
            messages.push(NetMessage {
                number: u32::try_from(number + 1).unwrap_or(u32::MAX),
                from: name(message.from),
                to: name(*to),
                precedence: message.precedence.clone(),
                text_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
                sent_s: sent.map_or(message.at.as_secs_f64(), |at| begun.seconds_to(at)),
                delivered_s: first.map(|at| begun.seconds_to(*at)),
                lost: first.is_none().then(|| lost.to_owned()),
                copies: u32::try_from(came.len()).unwrap_or(u32::MAX),
                crossed: way.crossed.clone(),
                hops: way.hops,
            });
        }
    }
    messages
}

/// What must be true of every run.
pub(super) fn checks(messages: &[NetMessage], failed: &[(usize, String)]) -> Vec<NetCheck> {
    let doubled = messages.iter().filter(|message| message.copies > 1).count();
    let early = messages.iter().filter(|message| {
        // The programs' times have milliseconds.
        message.delivered_s.is_some_and(|at| at < message.sent_s - 0.001)
    });
    let early = early.count();
    let check = |name: &str, count: usize, found: String| NetCheck {
        name: name.to_owned(),
        holds: count == 0,
        found,
    };
    let first = failed
        .first()
        .map_or(String::new(), |(number, why)| format!("; message {}: {why}", number + 1));
    vec![
        check(ONCE, doubled, format!("{doubled} came more often")),
        check("none came before it was sent", early, format!("{early} did")),
        check(
            "each was taken by its sender's service",
            failed.len(),
            format!("{} were not{first}", failed.len()),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_comes_twice_or_too_early_is_seen() {
        let message = |copies, delivered_s| NetMessage {
            copies,
            sent_s: 1.0,
            delivered_s,
            ..NetMessage::default()
        };
        let good = checks(&[message(1, Some(0.9995)), message(0, None)], &[]);
        assert!(good.iter().all(|check| check.holds), "{good:?}");
        let bad = checks(&[message(2, Some(0.5))], &[(0, "status 422".to_owned())]);
        assert!(bad.iter().all(|check| !check.holds), "{bad:?}");
    }
}
