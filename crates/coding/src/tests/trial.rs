//! What becomes of encodings that are tried on a first block: the one that goes is told with its
//! own times, and one that was found worse is not gone back to.

use std::sync::{Arc, Mutex};

use decide::Arm;
use decide::network;
use decide::policy::{Decision, Going, Observation, Policy, Request};
use decide::state;
use proto::control::Receipt;
use proto::exchange::Part;
use record::decision::Outcome;
use record::event::Fact;

use super::*;
use crate::job::Done;

/// Tries these in turn, and then wants to go on in `wished`; else as the one before it.
#[derive(Debug)]
struct Scripted {
    before: Box<dyn Policy>,
    tries: Vec<Arm>,
    wished: Arm,
    /// Whether what is wished was open whenever it was asked for.
    open: Arc<Mutex<Vec<bool>>>,
}

impl Policy for Scripted {
    fn choose(&mut self, request: &Request<'_>) -> Decision {
        let mut decision = self.before.choose(request);
        let first = decision.candidates.iter().find(|one| one.arm == self.tries[0]);
        decision.chosen = *first.expect("it may be taken");
        decision
    }

    fn again(&self, _: &Decision, _: &network::Path, tried: &[Arm], _: f64) -> Option<Arm> {
        self.tries.get(tried.len()).copied()
    }

    fn revise(&self, rest: &Request<'_>, going: &Going) -> Option<(Arm, &'static str)> {
        let open = (rest.allowed)(self.wished);
        self.open.lock().unwrap().push(open);
        (open && going.arm != self.wished).then_some((self.wished, "wished"))
    }

    fn network_s(&self, _: &network::Path, bytes: f64) -> f64 {
        bytes * 1e-6
    }

    fn observe(&mut self, observation: &Observation<'_>) {
        self.before.observe(observation);
    }

    fn state_bytes(&self) -> usize {
        self.before.state_bytes()
    }

    fn save(&self, arms: &[&str], out: &mut Vec<u8>) {
        self.before.save(arms, out);
    }

    fn restore(&mut self, arms: &[&str], bytes: &[u8]) -> Result<(), state::Error> {
        self.before.restore(arms, bytes)
    }
}

/// What an encoder gives: so many bytes, after so long for a thread and so long of its own.
type Gives = (usize, Duration, Duration);

/// A side that is made to try these on a body of so many bytes. What its encoders were asked for,
/// what came of the body, and whether what is wished was open when it was asked for.
fn tries(gives: &[(&str, Gives)], wished: &str, bytes: usize) -> (Vec<String>, Outcome, Vec<bool>) {
    let mut coding = Coding::new(config(EDGE));
    let arm = |name: &str| {
        let arms = coding.core.config.encoding.arms();
        Arm(arms.iter().position(|options| options.label() == name).expect("an arm"))
    };
    let (arms, wished): (Vec<_>, _) =
        (gives.iter().map(|(name, _)| arm(name)).collect(), arm(wished));
    let open = Arc::<Mutex<Vec<bool>>>::default();
    let before = coding.core.config.encoding.policy();
    coding.core.policy =
        Box::new(Scripted { before, tries: arms, wished, open: Arc::clone(&open) });
    let exchange = ExchangeId { instance: 1, number: 1 };
    let body: Vec<u8> = (0..bytes).map(|at| b"<a>text</a>"[at % 11]).collect();
    let media = Some("text/xml".to_owned());
    let abilities = Abilities { codecs: vec![0, 1, 2], max_window_log: 20, ..abilities(&coding) };
    let mut todo = VecDeque::from([
        Input::Up { path: PATH, peer: "p".to_owned(), kind: "stream", instance: 9, abilities },
        Input::Open { exchange, about: About::default() },
        Input::Message { exchange, message: Message { media, ..Message::default() } },
        Input::Attach { exchange, path: PATH },
        Input::Body { exchange, bytes: body.into() },
        Input::End { exchange, trailers: false },
    ]);
    let (mut now, mut asked, mut outcome) = (ms(0), Vec::new(), None);
    let mut answered = false;
    while let Some(input) = todo.pop_front() {
        coding.handle_input(now, input);
        while let Some(output) = coding.poll_output() {
            match output {
                Output::Job(Job::Encode(job)) => {
                    let label = job.setup.options.label();
                    let given = gives.iter().find(|(name, _)| *name == label);
                    let (len, waits, cpu) = given.map_or((1, ms(0), ms(0)), |(_, gives)| *gives);
                    now += waits + cpu;
                    let (exchange, block) = (job.exchange, job.block);
                    let result = Ok(vec![0; len].into());
                    todo.push_back(Input::Done(Done::Encoded { exchange, block, result, cpu }));
                    asked.push(label);
                }
                Output::Settled { exchange, .. } => todo.push_back(Input::Led { exchange }),
                Output::Block { exchange, end, .. } => {
                    let departed = Departed { body: true, block: true, more: false, end };
                    todo.push_back(Input::Departed { exchange, departed });
                }
                Output::Event(Fact::Outcome { outcome: found, .. }) => outcome = Some(found),
                _ => {}
            }
        }
        if todo.is_empty() && !answered {
            answered = true;
            now += ms(100);
            let receipt = Receipt { exchange: exchange.number, ..Receipt::default() };
            let Part::Control(kind, content) = receipt.part() else { unreachable!() };
            todo.push_back(Input::Control { path: PATH, kind, content });
        }
    }
    let open = open.lock().unwrap().clone();
    (asked, outcome.expect("an outcome"), open)
}

#[test]
fn what_goes_is_reported_with_its_own_wait() {
    let (first, second) = ((3000, ms(7), ms(1)), (4000, ms(70), ms(2)));
    let gives = [("zstd:3", first), ("zstd:9", second)];
    let (asked, outcome, _) = tries(&gives, "identity", 20_000);
    assert_eq!(asked, ["zstd:3", "zstd:9"]);
    assert_eq!((&outcome.encoding[..], outcome.actual.bytes), ("zstd:3", 3000));
    assert_eq!((outcome.actual.wait_s, outcome.actual.encode_s), (0.007, 0.001));
}

#[test]
fn what_was_just_found_worse_is_not_gone_back_to() {
    let body = 3 << 16;
    let best = (30_000, ms(0), ms(4));
    // Longer and slower; longer, and so much faster that it is soonest for the rest.
    for (dropped, may) in [((31_000, ms(0), ms(9)), false), ((31_000, ms(0), ms(1)), true)] {
        let gives = [("zstd:9", dropped), ("zstd:3", best)];
        let (asked, outcome, open) = tries(&gives, "zstd:9", body);
        assert_eq!(asked[..2], ["zstd:9", "zstd:3"]);
        assert_eq!(open.first(), Some(&may), "{asked:?}");
        assert_eq!(outcome.revisions.len(), usize::from(may), "{outcome:?}");
    }
}
