use proptest::prelude::*;

use super::soap::Version;
use super::*;
use crate::Error;

fn model() -> Model {
    let of = |codec, fixed_s, per_byte_s| Decoding { codec, fixed_s, per_byte_s };
    Model { encodings: vec![of(1, 3e-5, 4e-9), of(2, 2e-5, 1.5e-9), of(3, 1e-4, 3e-9)] }
}

fn profile() -> Profile {
    let link = Link { rate_bps: 250_000.0, rtt_s: 1.0, loss: 0.01 };
    Profile { hash: *b"01234567", model: Some(model()), link: Some(link) }
}

fn bytes(profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    profile.encode(&mut out);
    out
}

fn known(packet: Result<Packet, Error>) -> Profile {
    match packet {
        Ok(Packet::Profile(profile)) => profile,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_profile_is_a_few_tens_of_bytes() {
    let whole = bytes(&profile());
    assert_eq!(whole.len(), 32);
    let hash_alone = Profile { model: None, link: None, ..profile() };
    assert_eq!(bytes(&hash_alone), b"\x01\x0001234567");
    assert_eq!(encode_field(&hash_alone), ":AQAwMTIzNDU2Nw==:");
    assert!(encode_field(&profile()).len() <= 46);
}

#[test]
fn three_digits_of_each_figure_arrive() {
    let back = known(Packet::decode(&bytes(&profile())));
    let near = |a: f32, b: f32| (a / b - 1.0).abs() < 0.004;
    let link = back.link.unwrap();
    assert!(near(link.rate_bps, 250_000.0) && near(link.rtt_s, 1.0) && near(link.loss, 0.01));
    let decoded = back.model.unwrap();
    for (ours, theirs) in model().encodings.iter().zip(&decoded.encodings) {
        assert_eq!(ours.codec, theirs.codec);
        assert!(near(ours.fixed_s, theirs.fixed_s) && near(ours.per_byte_s, theirs.per_byte_s));
    }
    assert_eq!(decoded.of(2).unwrap().codec, 2);
    assert_eq!(decoded.of(4), None);
}

#[test]
fn a_later_version_is_a_value() {
    assert_eq!(Packet::decode(&[2, 0xff, 9]), Ok(Packet::Later { version: 2 }));
    assert_eq!(Packet::decode(&[0x7f, 0xff]), Ok(Packet::Later { version: 0x3fff }));
    assert!(Packet::decode(&[0]).is_err());
}

#[test]
fn what_nobody_measures_is_refused() {
    let with = |change: &dyn Fn(&mut Profile)| {
        let mut changed = profile();
        change(&mut changed);
        Packet::decode(&bytes(&changed))
    };
    type Value = fn(&mut Profile) -> &mut f32;
    let fixed: Value = |profile| &mut profile.model.as_mut().unwrap().encodings[0].fixed_s;
    let per_byte: Value = |profile| &mut profile.model.as_mut().unwrap().encodings[2].per_byte_s;
    let rate: Value = |profile| &mut profile.link.as_mut().unwrap().rate_bps;
    let rtt: Value = |profile| &mut profile.link.as_mut().unwrap().rtt_s;
    let loss: Value = |profile| &mut profile.link.as_mut().unwrap().loss;
    for (value, absurd) in [
        (fixed, &[-1.0, 1e9, f32::NAN, f32::INFINITY][..]),
        (per_byte, &[-1e-9, 1.0, f32::NAN, f32::NEG_INFINITY]),
        (rate, &[0.0, -5.0, f32::NAN, f32::INFINITY, 1e30]),
        (rtt, &[-0.1, 1e6, f32::NAN, f32::INFINITY]),
        (loss, &[1.0, 1.5, -0.5, f32::NAN]),
    ] {
        for &bad in absurd {
            let result = with(&|profile| *value(profile) = bad);
            assert!(matches!(result, Err(Error::Peer { .. })), "{bad}: {result:?}");
        }
    }
    let twice = with(&|profile| profile.model.as_mut().unwrap().encodings[1].codec = 1);
    assert!(matches!(twice, Err(Error::Peer { .. })), "{twice:?}");
}

#[test]
fn what_is_too_much_or_too_little_is_refused() {
    let whole = bytes(&profile());
    for len in 0..whole.len() {
        assert!(matches!(Packet::decode(&whole[..len]), Err(Error::Truncated { .. })), "{len}");
    }
    let longer = [&whole[..], &[0]].concat();
    assert!(matches!(Packet::decode(&longer), Err(Error::Peer { value: 1, .. })));
    let many = Model { encodings: vec![Decoding::default(); MAX_ENCODINGS + 1] };
    let many = Profile { model: Some(many), ..profile() };
    assert!(matches!(Packet::decode(&bytes(&many)), Err(Error::Limit { .. })));
    assert!(matches!(Packet::decode(&[2; MAX_BYTES + 1]), Err(Error::Limit { .. })));
    let mut flags = whole;
    flags[1] |= 0x80;
    assert!(matches!(Packet::decode(&flags), Err(Error::Peer { value: 0x83, .. })));
}

#[test]
fn a_field_is_one_item_of_structured_fields() {
    let text = encode_field(&profile());
    let whole = known(decode_field(text.as_bytes()));
    for fine in [format!(" {text} "), format!("{text};a=1;b=:AA==:"), text.replace('=', "")] {
        assert_eq!(known(decode_field(fine.as_bytes())), whole, "{fine}");
    }
    let double = format!("{text}, {text}");
    let behind = format!("{text}x");
    let long = format!("{text};{}", "a".repeat(MAX_TEXT_BYTES));
    for wrong in ["", ":", "::", ":A:", ":A===:", ":AQ-_:", "AQAw", &double, &behind, &long, "?1"] {
        assert!(decode_field(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn a_header_block_need_not_be_understood() {
    for version in Version::ALL {
        let block = soap::encode_block(&profile(), version);
        assert!(
            block.contains(&format!("xmlns:s=\"{}\" s:mustUnderstand=\"0\"", version.namespace()))
        );
        let (_, rest) = block.split_once('>').unwrap();
        let (content, end) = rest.split_once('<').unwrap();
        assert_eq!(end, "/p:Profile>");
        let folded = format!("\r\n\t{} \n{}", &content[..9], &content[9..]);
        let whole = known(Packet::decode(&bytes(&profile())));
        assert_eq!(known(soap::decode_content(&folded)), whole);
    }
    assert!(soap::decode_content(&" ".repeat(MAX_TEXT_BYTES + 1)).is_err());
}

prop_compose! {
    fn any_profile()(
        hash in any::<[u8; 8]>(),
        codecs in proptest::option::of(
            proptest::collection::btree_set(0..=crate::varint::MAX, 0..=MAX_ENCODINGS),
        ),
        times in proptest::collection::vec((0.0..MAX_SECONDS, 0.0..MAX_PER_BYTE_S), MAX_ENCODINGS),
        link in proptest::option::of((1.0..1e12_f32, 0.0..MAX_SECONDS, 0.0..0.99_f32)),
    ) -> Profile {
        let model = codecs.map(|codecs| Model {
            encodings: codecs.into_iter().zip(times)
                .map(|(codec, (fixed_s, per_byte_s))| Decoding { codec, fixed_s, per_byte_s })
                .collect(),
        });
        let link = link.map(|(rate_bps, rtt_s, loss)| Link { rate_bps, rtt_s, loss });
        Profile { hash, model, link }
    }
}

proptest! {
    #[test]
    fn what_is_encoded_decodes_in_every_form(profile in any_profile()) {
        let bytes = bytes(&profile);
        prop_assert!(bytes.len() <= MAX_BYTES);
        let back = known(Packet::decode(&bytes));
        let mut again = Vec::new();
        back.encode(&mut again);
        prop_assert_eq!(&again, &bytes);
        prop_assert_eq!(&known(decode_field(encode_field(&profile).as_bytes())), &back);
        prop_assert_eq!(profile.hash, back.hash);
        prop_assert_eq!(profile.model.is_some(), back.model.is_some());
    }

    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = Packet::decode(&bytes);
        let _ = decode_field(&bytes);
        let _ = soap::decode_content(&String::from_utf8_lossy(&bytes));
        let forced = [&[1, bytes.first().copied().unwrap_or(0) & 3], &bytes[..]].concat();
        if let Ok(Packet::Profile(profile)) = Packet::decode(&forced) {
            let mut again = Vec::new();
            profile.encode(&mut again);
            prop_assert_eq!(Packet::decode(&again), Ok(Packet::Profile(profile)));
        }
    }
}
