//! Any text as a profile: it is refused with faults, or has a canonical form, federations and
//! configurations of its partners, which take any topic; no panic.
#![no_main]

use federation::{Options, configuration, differences, parse};
use libfuzzer_sys::fuzz_target;

/// Longest text: comparing flows takes the square of their number.
const MAX_TEXT_BYTES: usize = 20_000;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else { return };
    if text.len() > MAX_TEXT_BYTES {
        return;
    }
    let profile = match parse("fuzz.toml", text) {
        Ok(profile) => profile,
        Err(faults) => {
            assert!(!faults.faults.is_empty());
            assert!(faults.lines().all(|line| !line.contains('\n')));
            return;
        }
    };
    let canonical = profile.canonical();
    assert!(!canonical.contains('\n'));
    assert!(differences(&profile, &profile).is_empty());
    assert!(profile.is_signed_by_all(&[]).is_err() || !profile.signatures.is_empty());
    for partner in &profile.partners {
        assert!(profile.federation(&partner.name).is_some());
        let options = Options { file: "fuzz.toml".to_owned(), ..Options::default() };
        assert!(configuration(&profile, &partner.name, &options).is_some());
    }
});
