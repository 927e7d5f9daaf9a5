//! What holds for every codec of the table, in its standard form.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Tests.

mod common;

use common::{assert_same, decode, encode, samples, settings};
use longwire_codec::{
    CODECS, Codec, Encoder, Error, Flow, Limits, MAX_CODECS, MAX_WINDOW_LOG, Options, Properties,
    Settings, StreamDecoder, Table, block_codecs, find,
};

#[test]
fn names_and_numbers_are_of_one_codec_each() {
    for (at, codec) in CODECS.iter().enumerate() {
        let properties = codec.properties();
        assert_eq!(find(properties.name).unwrap().number(), properties.number);
        for other in &CODECS[..at] {
            assert_ne!(other.name(), properties.name);
            assert_ne!(other.number(), properties.number);
        }
        if let Some((least, usual, most)) = properties.levels {
            assert!(least <= usual && usual <= most, "{}", properties.name);
        }
    }
    let message = find("lzma").err().unwrap().to_string();
    assert!(message.starts_with("unknown codec 'lzma': one of identity, deflate, zstd"));
}

#[test]
fn messages_come_back_in_blocks_of_any_size() {
    for &codec in CODECS {
        let settings = settings(codec);
        for message in samples(codec) {
            let whole = settings.encode(codec.name(), &message).unwrap();
            let decoded = settings.decode(codec.name(), &whole).unwrap();
            assert_same(codec, &settings, &message, &whole, &decoded);
            for block in [1, 7, 1000] {
                let coded = encode(codec, &settings, &message, block).unwrap();
                let pieces = decode(codec, &settings, &coded, block);
                assert_eq!(pieces.as_ref(), Ok(&decoded), "{} in {block}", codec.name());
            }
        }
    }
}

#[test]
fn every_level_comes_back() {
    for &codec in CODECS {
        let Some((least, _, most)) = codec.levels() else { continue };
        for level in least..=most {
            let settings = Settings { level: Some(level), ..settings(codec) };
            let message = samples(codec).pop().unwrap();
            let coded = settings.encode(codec.name(), &message).unwrap();
            let decoded = settings.decode(codec.name(), &coded).unwrap();
            assert_same(codec, &settings, &message, &coded, &decoded);
        }
        let beyond = Settings { level: Some(most + 1), ..settings(codec) };
        let error = beyond.encoder(codec.name()).err().unwrap();
        assert!(matches!(error, Error::Option { .. }), "{error}");
    }
}

#[test]
fn what_comes_out_is_bounded() {
    for &codec in CODECS {
        let mut settings = settings(codec);
        let message = samples(codec).pop().unwrap();
        let coded = settings.encode(codec.name(), &message).unwrap();
        settings.limits.output_bytes = 100;
        let error = settings.decode(codec.name(), &coded).unwrap_err();
        assert!(matches!(error, Error::Limit { .. }), "{}: {error}", codec.name());
    }
}

#[test]
fn a_message_that_is_held_is_bounded() {
    for &codec in CODECS.iter().filter(|codec| codec.properties().flow == Flow::Whole) {
        let limits = Limits { message_bytes: 100, ..settings(codec).limits };
        let settings = Settings { limits, ..settings(codec) };
        let message = samples(codec).pop().unwrap();
        let error = settings.encode(codec.name(), &message).unwrap_err();
        assert!(matches!(error, Error::Limit { .. }), "{}: {error}", codec.name());
    }
}

#[test]
fn streams_that_end_early_or_late_are_refused() {
    for &codec in CODECS.iter().filter(|codec| codec.number() != 0) {
        let settings = settings(codec);
        for message in samples(codec) {
            let coded = settings.encode(codec.name(), &message).unwrap();
            let step = (coded.len() / 20).max(1);
            for cut in (0..coded.len()).step_by(step) {
                let result = settings.decode(codec.name(), &coded[..cut]);
                assert!(result.is_err(), "{} cut at {cut} of {}", codec.name(), coded.len());
            }
            let late = [&coded[..], b"\x55"].concat();
            assert!(settings.decode(codec.name(), &late).is_err(), "{}: trailing", codec.name());
        }
    }
}

#[test]
fn members_and_frames_may_follow_one_another() {
    let settings = Settings::default();
    for name in ["deflate", "zstd"] {
        let (one, two) = (settings.encode(name, b"one ").unwrap(), settings.encode(name, b"two"));
        let both = [one, two.unwrap()].concat();
        assert_eq!(settings.decode(name, &both).unwrap(), b"one two");
        let codec = find(name).unwrap();
        assert_eq!(decode(codec, &settings, &both, 1).unwrap(), b"one two");
    }
}

#[test]
fn media_types_say_what_a_codec_is_for() {
    let deflate = find("deflate").unwrap().properties();
    assert!(deflate.applies_to("image/png") && deflate.applies_to("application/soap+xml"));
    for codec in CODECS.iter().map(|codec| codec.properties()) {
        let for_xml = codec.applies_to("application/soap+xml");
        assert_eq!(for_xml, codec.applies_to("Text/XML"), "{}", codec.name);
        assert!(for_xml || codec.applies_to("application/senml+json"), "{}", codec.name);
    }
}

/// What a peer may ask for needs nothing that both must have.
#[test]
fn only_codecs_for_blocks_are_for_any_exchange() {
    for codec in block_codecs() {
        assert_eq!(codec.properties().needs, longwire_codec::Needs::Nothing);
        assert_eq!(codec.properties().flow, Flow::Blocks);
    }
    for codec in CODECS.iter().filter(|codec| codec.properties().flow != Flow::Blocks) {
        let options = Options { codec: *codec, level: 0, window_log: 15 };
        assert!(options.decoder().is_err(), "{}", codec.name());
        let known = Table::default().options(codec.number(), 15);
        assert_eq!(known.is_ok(), !options.stands_alone(), "{}", codec.name());
    }
}

/// As [`longwire_codec::Codec`] has it, with another number and name.
struct Renamed(Properties);

impl Codec for Renamed {
    fn properties(&self) -> &'static Properties {
        Box::leak(Box::new(self.0))
    }

    fn stream_encoder(&self, settings: &Settings) -> Result<Box<dyn Encoder>, Error> {
        find("zstd")?.stream_encoder(settings)
    }

    fn stream_decoder(&self, settings: &Settings) -> Result<Box<dyn StreamDecoder>, Error> {
        find("zstd")?.stream_decoder(settings)
    }
}

fn renamed(name: &'static str, number: u64) -> &'static dyn Codec {
    let properties = find("zstd").unwrap().properties();
    Box::leak(Box::new(Renamed(Properties { name, number, ..*properties })))
}

/// A peer's number is a codec where the table has one, and messages go through it, though it is not
/// built in.
#[test]
fn a_table_has_what_was_added_to_it_and_no_other_has() {
    let more = Table::default().with(renamed("other", 1000)).unwrap();
    let options = more.options(1000, 17).unwrap();
    assert_eq!((options.codec.name(), options.window_log), ("other", 17));
    assert_eq!(more.block_codecs().count(), block_codecs().count() + 1);
    let message = Table::default().options(1000, 17).unwrap_err().to_string();
    assert_eq!(message, "no codec has the number 1000");
    let (mut coded, mut back) = (Vec::new(), Vec::new());
    let text = b"to be, or not to be, to be, or not to be".repeat(9);
    options.encoder().unwrap().encode(&text, true, &mut coded).unwrap();
    options.decoder().unwrap().decode(&coded, text.len(), true, &mut back).unwrap();
    assert!(back == text && coded.len() < text.len() / 2);
}

#[test]
fn a_table_refuses_what_would_mean_two_codecs_and_windows_over_the_limit() {
    let with = |name, number| Table::default().with(renamed(name, number));
    for (name, number) in [("other", 2), ("zstd", 1000)] {
        let message = with(name, number).unwrap_err().to_string();
        let both = format!("codec {name} ({number}) beside zstd (2)");
        assert_eq!(message, format!("{both}: each has a name and a number of its own"));
    }
    let mut full = Table::default();
    for number in CODECS.len()..MAX_CODECS {
        let name = Box::leak(format!("other{number}").into_boxed_str());
        full = full.with(renamed(name, 1000 + number as u64)).unwrap();
    }
    assert!(full.with(renamed("other", 1000)).is_err());
    assert!(Table::default().options(2, MAX_WINDOW_LOG + 1).is_err());
    assert!(Table::default().options(Options::DELTA.codec.number(), MAX_WINDOW_LOG + 1).is_err());
}
