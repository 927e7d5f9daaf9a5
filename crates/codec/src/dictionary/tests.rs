use proptest::prelude::*;

use super::rfc9842::Form;
use super::*;

const METHODS: [Method; 5] =
    [Method::Stored, Method::Deflate, Method::Zstd, Method::Brotli, Method::Mix];

fn message(unit: u32) -> Vec<u8> {
    format!(
        "<?xml version=\"1.0\"?><track xmlns=\"urn:example:tracks\">\
         <unit id=\"{unit}\">BRAVO-{}</unit>\
         <position><lat>{}.{}</lat><lon>{}</lon></position><speed unit=\"km/h\">{}</speed></track>",
        unit % 7,
        unit % 90,
        unit * 7919,
        unit * 104_729,
        unit % 30
    )
    .into_bytes()
}

fn samples() -> Vec<Vec<u8>> {
    (0..60).map(|unit| message(unit * 31)).collect()
}

fn slices(samples: &[Vec<u8>]) -> Vec<&[u8]> {
    samples.iter().map(Vec::as_slice).collect()
}

fn dictionaries() -> Vec<Dictionary> {
    let samples = samples();
    let (samples, limits) = (slices(&samples), Limits::default());
    vec![
        train(&samples, 2048, &limits).unwrap(),
        excerpt(&samples, 2048, &limits).unwrap(),
        gather(&samples, 1024, &limits).unwrap(),
        Dictionary::raw(&b""[..], &limits).unwrap(),
        Dictionary::raw(message(3), &limits).unwrap(),
    ]
}

#[test]
fn each_method_with_each_dictionary_brings_messages_back() {
    let limits = Limits::default();
    for (index, dictionary) in dictionaries().iter().enumerate() {
        assert_eq!(dictionary.is_trained(), index == 0);
        assert!(dictionary.content().len() <= if index == 2 { 256 << 10 } else { 2048 });
        for method in METHODS {
            let mut coder = Coder::new(dictionary, method, None, &limits).unwrap();
            let long = message(8).repeat(1200);
            for message in [message(77), b"".to_vec(), b"x".to_vec(), vec![b'y'; 70_000], long] {
                let coded = coder.encode(&message).unwrap();
                assert!(coded.len() <= message.len() + 17, "{method:?}");
                assert_eq!(coder.decode(&coded).unwrap(), message, "{method:?} {index}");
            }
            let len = coder.encode(&message(1234)).unwrap().len();
            println!("{method:?} with dictionary {index}: {len} of {}", message(1234).len());
            assert!(method == Method::Stored || index == 3 || len < 90, "{method:?}: {len}");
        }
    }
}

/// A match that begins with the last byte of the dictionary and goes on in the message: the library
/// cuts it to one byte, which has no code, at the levels that are refused for that.
#[test]
fn matches_across_the_border_come_back() {
    let limits = Limits::default();
    let known = Dictionary::new(&b"what both sides have, up to here: X"[..], &limits).unwrap();
    // Three bytes match at a distance of four, of which one is the dictionary's; at levels 5 to 9
    // the library panics.
    let message = b"abcXabZ0123456789QRSTUVWxy!";
    assert!(Coder::new(&known, Method::Brotli, Some(9), &limits).is_err());
    for level in 10..=11 {
        let mut coder = Coder::new(&known, Method::Brotli, Some(level), &limits).unwrap();
        let coded = coder.encode(message).unwrap();
        assert_eq!(coder.decode(&coded).unwrap(), message, "level {level}");
        let stream = rfc9842::encode(Form::Dcb, known.content(), message, Some(level), &limits);
        let back = rfc9842::decode(Form::Dcb, known.content(), &stream.unwrap(), &limits);
        assert_eq!(back.unwrap(), message, "level {level}");
    }
}

#[test]
fn another_dictionary_is_an_error() {
    let limits = Limits::default();
    let all = dictionaries();
    for method in METHODS {
        let coded =
            Coder::new(&all[1], method, None, &limits).unwrap().encode(&message(5)).unwrap();
        for other in [&all[0], &all[2], &all[3]] {
            let refused = Coder::new(other, method, None, &limits).unwrap().decode(&coded);
            assert!(matches!(refused, Err(Error::Malformed { offset: 1, .. })), "{refused:?}");
        }
    }
}

#[test]
fn a_damaged_dictionary_is_called_damaged() {
    let limits = Limits::default();
    let sound = train(&slices(&samples()), 2048, &limits).unwrap();
    let (content, message) = (sound.content(), message(7));
    let mut of_sound = Coder::new(&sound, Method::Zstd, None, &limits).unwrap();
    let mut flipped = content.to_vec();
    flipped[9] ^= 0xff;
    let junk = [&TRAINED_MAGIC[..], &[0xff; 300]].concat();
    for damaged in [content[..12].to_vec(), content[..60].to_vec(), flipped, junk] {
        let damaged = Dictionary::new(damaged, &limits).unwrap();
        let mut coder = Coder::new(&damaged, Method::Zstd, None, &limits).unwrap();
        let refused = coder.encode(&message).unwrap_err().to_string();
        assert!(refused.starts_with("dictionary: damaged: "), "{refused}");
        let mut coded = of_sound.encode(&message).unwrap();
        coded[1..9].copy_from_slice(&damaged.id().short());
        let refused = coder.decode(&coded).unwrap_err().to_string();
        assert!(refused.starts_with("dictionary: damaged: "), "{refused}");
    }
}

#[test]
fn damage_is_refused() {
    let limits = Limits::default();
    let dictionary = &dictionaries()[1];
    for method in METHODS {
        let mut coder = Coder::new(dictionary, method, None, &limits).unwrap();
        let coded = coder.encode(&message(9)).unwrap();
        for at in 0..coded.len() {
            let mut damaged = coded.clone();
            damaged[at] ^= 1 << (at % 8);
            match coder.decode(&damaged) {
                Err(_) => {}
                // Unused bits of a stream may be anything.
                Ok(back) => assert_eq!(back, message(9), "{method:?} {at}"),
            }
            assert!(coder.decode(&coded[..at]).is_err(), "{method:?} cut {at}");
        }
        assert!(coder.decode(&[&coded[..], b"x"].concat()).is_err(), "{method:?} trailing");
    }
}

/// A peer that mixes where something else was agreed would cost its receiver megabytes and seconds.
#[test]
fn what_is_mixed_is_read_only_where_that_is_expected() {
    let limits = Limits::default();
    let dictionary = &dictionaries()[1];
    let mut mixer = Coder::new(dictionary, Method::Mix, None, &limits).unwrap();
    let coded = mixer.encode(&message(9)).unwrap();
    assert_eq!(mixer.decode(&coded).unwrap(), message(9));
    for method in METHODS.into_iter().filter(|method| *method != Method::Mix) {
        let mut coder = Coder::new(dictionary, method, None, &limits).unwrap();
        assert!(matches!(coder.decode(&coded), Err(Error::Malformed { .. })), "{method:?}");
        assert_eq!(coder.memory_bytes(), 0, "{method:?}");
    }
}

#[test]
fn limits_are_kept() {
    let dictionary = &dictionaries()[1];
    let wide = Limits::default();
    let narrow = Limits { output_bytes: 500, message_bytes: 600, ..wide };
    for method in METHODS {
        let coded =
            Coder::new(dictionary, method, None, &wide).unwrap().encode(&[b'z'; 550]).unwrap();
        let mut coder = Coder::new(dictionary, method, None, &narrow).unwrap();
        assert!(matches!(coder.decode(&coded), Err(Error::Limit { .. })));
        assert!(matches!(coder.encode(&[b'z'; 601]), Err(Error::Limit { .. })));
    }
    let small = Limits { table_bytes: 10, ..wide };
    assert!(Dictionary::new(vec![0; 11], &small).is_err());
    assert!(Coder::new(dictionary, Method::Deflate, Some(10), &wide).is_err());
    assert!(train(&[], 100, &wide).is_err());
}

#[test]
fn the_message_before_is_a_dictionary() {
    let limits = Limits::default();
    // Not even the trainer's magic number makes a message more than text.
    let before = [&TRAINED_MAGIC[..], &message(10)].concat();
    let mut coder = delta(&before, &limits).unwrap();
    let coded = coder.encode(&message(11)).unwrap();
    assert!(coded.len() < 70, "{}", coded.len());
    assert_eq!(coder.decode(&coded).unwrap(), message(11));
}

#[test]
fn stores_come_back_and_damage_shows() {
    let limits = Limits::default();
    let labels = ["camera", "", "tracks of Ä", "d", "e"];
    let entries = dictionaries().into_iter().zip(labels);
    let store = Store {
        entries: entries
            .map(|(dictionary, label)| Entry { label: label.to_owned(), dictionary })
            .collect(),
    };
    let bytes = store.encode().unwrap();
    assert_eq!(Store::decode(&bytes, &limits).unwrap(), store);
    let second = &store.entries[1].dictionary;
    assert_eq!(store.find(second.id().short()), Some(second));
    assert_eq!(store.find([0; 8]), None);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x11;
        if let Ok(other) = Store::decode(&damaged, &limits) {
            // Labels are not covered by a hash; the checksum of a frame may be cut off by no one.
            let dictionaries = |store: &Store| -> Vec<Dictionary> {
                store.entries.iter().map(|entry| entry.dictionary.clone()).collect()
            };
            assert_eq!(dictionaries(&other), dictionaries(&store), "{at}");
        }
        assert!(Store::decode(&bytes[..at], &limits).is_err(), "cut {at}");
    }
    assert!(Store::decode(&[&bytes[..], b"x"].concat(), &limits).is_err());
    let small = Limits { table_bytes: 3000, ..limits };
    assert!(matches!(Store::decode(&bytes, &small), Err(Error::Limit { .. })));
}

#[test]
fn streams_of_http_come_back() {
    use rfc9842::{Form, decode, encode};
    let limits = Limits::default();
    let dictionary = message(3);
    for (form, least) in [(Form::Dcb, 10), (Form::Dcz, 1)] {
        assert!(encode(form, &dictionary, b"", Some(least - 1), &limits).is_err());
        for text in [message(4), Vec::new(), message(5).repeat(9000)] {
            for level in [None, Some(least), Some(11)] {
                let coded = encode(form, &dictionary, &text, level, &limits).unwrap();
                assert_eq!(decode(form, &dictionary, &coded, &limits).unwrap(), text);
                assert!(decode(form, &message(4), &coded, &limits).is_err());
                assert!(decode(form, &dictionary, &coded[..coded.len() - 1], &limits).is_err());
                let trailing = [&coded[..], b"x"].concat();
                assert!(decode(form, &dictionary, &trailing, &limits).is_err());
                let narrow = Limits { output_bytes: 100, ..limits };
                let refused = decode(form, &dictionary, &coded, &narrow);
                assert!(text.is_empty() || matches!(refused, Err(Error::Limit { .. })));
            }
        }
        let len = encode(form, &dictionary, &message(4), None, &limits).unwrap().len();
        assert!(len < 100, "{form:?}: {len}");
        assert!(encode(form, &dictionary, b"", Some(23), &limits).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn anything_comes_back(dictionary: Vec<u8>, message: Vec<u8>, which in 0..5_usize) {
        let limits = Limits::default();
        let dictionary = Dictionary::raw(dictionary, &limits).unwrap();
        let mut coder = Coder::new(&dictionary, METHODS[which], None, &limits).unwrap();
        let coded = coder.encode(&message).unwrap();
        prop_assert_eq!(coder.decode(&coded).unwrap(), message);
    }

    #[test]
    fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let limits = Limits { output_bytes: 1 << 16, table_bytes: 1 << 20, ..Limits::default() };
        let known = Dictionary::raw(&b"abcdefgh"[..], &limits).unwrap();
        let mut coder = Coder::new(&known, Method::Zstd, None, &limits).unwrap();
        for method in 0..5 {
            let framed = [&[0xd0 | method][..], &known.id().short(), &bytes].concat();
            let _ = coder.decode(&framed);
        }
        let _ = Store::decode(&[&b"lwds\x01"[..], &bytes].concat(), &limits);
        for form in [Form::Dcb, Form::Dcz] {
            let head = rfc9842::encode(form, b"abc", b"", None, &limits).unwrap();
            let head = &head[..if form == Form::Dcb { 36 } else { 40 }];
            let _ = rfc9842::decode(form, b"abc", &[head, &bytes].concat(), &limits);
        }
    }
}
