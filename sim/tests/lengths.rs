//! What lengths tell: at most a bit in a hundred answers, and nothing at all between clients and
//! between sites.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers of tests fail and tell as tests do.

use coding::Encoding;
use longwire_sim::lengths::{Attack, Observed};

/// Bits that a hundred answers may tell.
const MAX_BITS: f64 = 1.0;

fn bits(attack: Attack, encoding: &str, guesses: usize) -> f64 {
    let observed = Observed::of(attack, &Encoding::of(encoding).unwrap(), guesses);
    let bits = observed.bits_in_a_hundred();
    println!("{attack:?} {encoding}: {bits:.2} bits in a hundred answers");
    bits
}

#[test]
fn another_client_or_site_learns_nothing_of_a_secret() {
    for encoding in ["auto", "zstd:3", "deflate:9"] {
        for attack in [Attack::Client, Attack::Site] {
            assert!(bits(attack, encoding, 300) <= MAX_BITS, "{attack:?} {encoding}");
        }
        // From another site's answers nothing can be learned, however many there are.
        let observed = Observed::of(Attack::Site, &Encoding::of(encoding).unwrap(), 100);
        let [wrong, right] = observed.lengths;
        assert!(wrong.iter().chain(&right).all(|length| *length == wrong[0]), "{encoding}");
    }
}

#[test]
fn a_strangers_text_on_a_page_tells_little_of_a_secret_beside_it() {
    for encoding in ["auto", "zstd:3"] {
        assert!(bits(Attack::Page, encoding, 2000) <= MAX_BITS, "{encoding}");
        // What is measured can be seen where lengths are not padded.
        assert!(bits(Attack::Program, encoding, 300) > 10.0, "{encoding}");
    }
}
