//! What lengths on the carrier tell who guesses a secret: the two oracles of a hostile review, and
//! what is left where a stranger's text and a secret have to meet.
//!
//! A victim's answers hold a secret. Before each guess the victim asks once more, so that there is
//! an answer to be its base; then the attacker has one made that repeats the guess, and sees how
//! many bytes it took.

use std::collections::BTreeMap;

use coding::Encoding;
use decide::policy::Objective;
use link::LinkConfig;

use crate::random::Random;
use crate::repeated::{Messages, Pair};

/// What the victim's answers hold.
const SECRET: &str = "NL91ABNA0417164300";
/// So much of it is known already; what comes next is guessed.
const KNOWN: usize = 8;
/// Exchanges before the first that counts: from then on their numbers take two bytes, and the pair
/// has learned.
const WARM: usize = 40;

/// Who makes the victim's secret and a guess meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Another client, which a proxy in front tells from the victim by a field alone.
    Client,
    /// Another site, by the victim's own browser.
    Site,
    /// The victim's own page, which shows a stranger's text beside the secret.
    Page,
    /// The same, but it is a program's answer and not a page: as lengths are without padding.
    Program,
}

impl Attack {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Client, Self::Site, Self::Page, Self::Program];

    /// Fields of the victim's request, and of the one that guesses.
    fn fields(self) -> [Vec<(&'static str, &'static str)>; 2] {
        let cookie = ("cookie", "session=alice");
        let browser = |site| vec![cookie, ("sec-fetch-site", site), ("sec-fetch-mode", "cors")];
        match self {
            Self::Client => ["198.51.100.7", "203.0.113.9"].map(|ip| vec![("x-forwarded-for", ip)]),
            Self::Site => [browser("same-origin"), browser("cross-site")],
            Self::Page => [browser("same-origin"), browser("same-origin")],
            Self::Program => [vec![cookie], vec![cookie]],
        }
    }
}

/// Bytes of answers on the carrier, by whether the guess in them was right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Where it was wrong, and where it was right.
    pub lengths: [Vec<u64>; 2],
}

impl Observed {
    /// Has so many answers made, with a guess each that is right as often as not.
    #[must_use]
    pub fn of(attack: Attack, encoding: &Encoding, guesses: usize) -> Self {
        let link = LinkConfig::preset("satcom").unwrap_or_default();
        let mut pair = Pair::with(&link, "application/json", Objective::Bytes, encoding);
        let mut random = Random::new(1);
        let mut observed = Self::default();
        let [victim, guesser] = attack.fields();
        for round in 0..WARM + guesses {
            pair.exchange_of(&victim, &account(SECRET, ""));
            let is_right = random.below(2) == 1;
            let next = if is_right { &SECRET[KNOWN..=KNOWN] } else { "5" };
            let filler: String = (0..12)
                .map(|_| char::from(b'a' + u8::try_from(random.below(26)).unwrap_or(0)))
                .collect();
            let guess = format!("{}{next}~{filler}", &SECRET[..KNOWN]);
            // Another client's answers hold what is that client's.
            let secret = if attack == Attack::Client { "DE02120300000000202051" } else { SECRET };
            let took = pair.exchange_of(&guesser, &account(secret, &guess));
            if round >= WARM {
                observed.lengths[usize::from(is_right)].push(took.answered);
            }
        }
        observed
    }

    /// Bits that a hundred such lengths tell of whether guesses were right, as far as these show:
    /// the mutual information, less what so many would show by chance (Miller and Madow).
    #[must_use]
    pub fn bits_in_a_hundred(&self) -> f64 {
        let mut counts = BTreeMap::<u64, [f64; 2]>::new();
        for (at, lengths) in self.lengths.iter().enumerate() {
            for length in lengths {
                counts.entry(*length).or_default()[at] += 1.0;
            }
        }
        let of_class = [0, 1].map(|at| self.lengths[at].len() as f64);
        let all = of_class[0] + of_class[1];
        let part = |count: f64, class: f64, length: f64| match count > 0.0 {
            true => count / all * (count * all / (class * length)).log2(),
            false => 0.0,
        };
        let revealed: f64 = counts
            .values()
            .map(|[a, b]| part(*a, of_class[0], a + b) + part(*b, of_class[1], a + b))
            .sum();
        let chance = (counts.len() as f64 - 1.0) / (2.0 * all * std::f64::consts::LN_2);
        100.0 * (revealed - chance).max(0.0)
    }
}

/// An answer with somebody's secret, and with what was asked for.
fn account(secret: &str, note: &str) -> Messages {
    let answer = format!(
        "{{\"holder\": \"A. Smith\", \"iban\": \"{secret}\", \"bic\": \"ABNANL2A\", \
         \"balance\": \"1,204.33\", \"note\": \"{note}\"}}{}",
        " ".repeat(300)
    );
    Messages { path: "/account".to_owned(), request: Vec::new(), answer: answer.into_bytes() }
}
