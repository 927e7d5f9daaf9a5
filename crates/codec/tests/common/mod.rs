//! Messages of every kind, made here, and settings with which every codec of the table runs.

#![allow(dead_code)] // Each test binary uses its share.

use std::sync::Arc;

use longwire_codec::dictionary::Kept;
use longwire_codec::{Codec, Error, Fidelity, Limits, Needs, Settings, StreamDecoder};

/// XML with what codecs stumble over: prefixes, references, CDATA, comments, empty elements.
pub(crate) fn xml(elements: usize) -> Vec<u8> {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- tracks -->\n<t:tracks \
         xmlns:t=\"urn:example:tracks\" xmlns=\"urn:example:plain\" t:count='3'>\n",
    );
    for at in 0..elements {
        let mixed = at.wrapping_mul(0x9e37_79b9) >> 7 & 0xffff;
        text += &format!(
            "  <t:track id=\"{at}\" kind=\"a &amp; b\"><lat>{}.{mixed}</lat><time>2026-11-21T16:\
             {:02}:00Z</time><note><![CDATA[<raw>]]> &#xe9;t\u{e9} &lt;</note><empty/></t:track>\n",
            at % 90,
            at % 60
        );
    }
    (text + "</t:tracks>").into_bytes()
}

/// JSON with numbers, escapes and nesting.
pub(crate) fn json(records: usize) -> Vec<u8> {
    let record = |at: usize| {
        let number = at as f64 / 8.0;
        format!(
            "{{\"id\":{at},\"lat\":{number},\"big\":12345678901234567890123,\"exp\":1.50e-7,\
             \"name\":\"a \\\"b\\\" \u{e9}\\n\",\"tags\":[true,false,null,[],{{}}]}}"
        )
    };
    let records: Vec<_> = (0..records).map(record).collect();
    format!("[{}]", records.join(",")).into_bytes()
}

/// Bytes with little to find in them.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut chance = Chance(7);
    (0..len).map(|_| chance.byte()).collect()
}

/// Messages that this codec takes: small, empty where that is a message, and of some length.
pub(crate) fn samples(codec: &dyn Codec) -> Vec<Vec<u8>> {
    let properties = codec.properties();
    if properties.applies_to("application/octet-stream") {
        vec![Vec::new(), b"a".to_vec(), xml(1), xml(300), noise(3000)]
    } else if properties.applies_to("application/json") {
        vec![b"0".to_vec(), json(1), json(200)]
    } else {
        vec![b"<a/>".to_vec(), xml(0), xml(2), xml(200)]
    }
}

/// Settings with which the codec runs, bounded for hostile input.
pub(crate) fn settings(codec: &dyn Codec) -> Settings {
    let mut settings = Settings {
        limits: Limits {
            output_bytes: 1 << 20,
            table_bytes: 1 << 22,
            message_bytes: 1 << 20,
            ..Limits::default()
        },
        ..Settings::default()
    };
    if codec.properties().needs == Needs::Dictionary {
        settings.dictionary = Some(Arc::new(Kept::new(xml(3))));
    }
    settings
}

/// Encodes in blocks of so many bytes.
pub(crate) fn encode(
    codec: &dyn Codec,
    settings: &Settings,
    message: &[u8],
    block: usize,
) -> Result<Vec<u8>, Error> {
    let mut encoder = settings.encoder(codec.name())?;
    let mut out = Vec::new();
    for block in message.chunks(block) {
        encoder.encode(block, false, &mut out)?;
    }
    encoder.encode(b"", true, &mut out)?;
    Ok(out)
}

/// Decodes in blocks of so many bytes.
pub(crate) fn decode(
    codec: &dyn Codec,
    settings: &Settings,
    coded: &[u8],
    block: usize,
) -> Result<Vec<u8>, Error> {
    let mut decoder = settings.decoder(codec.name())?;
    let mut out = Vec::new();
    for block in coded.chunks(block) {
        feed(&mut *decoder, block, false, &mut out)?;
    }
    feed(&mut *decoder, b"", true, &mut out)?;
    Ok(out)
}

fn feed(
    decoder: &mut dyn StreamDecoder,
    mut input: &[u8],
    last: bool,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    loop {
        let before = out.len();
        let step = decoder.decode(input, last, out)?;
        input = &input[step.used..];
        if step.done || (step.used == 0 && out.len() == before) {
            return Ok(());
        }
    }
}

/// Chance with a fixed seed.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[3]
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 16).unwrap_or(0) % bound.max(1)
    }

    /// The bytes with one to three faults: flipped, cut, doubled, put in, overwritten.
    pub(crate) fn mutate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(3) {
            let (at, len) = (self.below(bytes.len() + 1), self.below(16));
            let end = (at + len).min(bytes.len());
            match self.below(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 => bytes.truncate(at),
                2 => drop(bytes.drain(at..end)),
                3 => {
                    let twice = bytes[at..end].to_vec();
                    bytes.splice(at..at, twice);
                }
                4 => bytes.insert(at, self.byte()),
                _ => bytes[at..end].fill([0, 0xff, 0x80, 0x7f][self.below(4)]),
            }
        }
        bytes
    }
}

/// Whether a message came back: its bytes, or a text that encodes to the same.
pub(crate) fn assert_same(
    codec: &dyn Codec,
    settings: &Settings,
    message: &[u8],
    coded: &[u8],
    decoded: &[u8],
) {
    let name = codec.name();
    if codec.properties().fidelity == Fidelity::Bytes {
        assert!(message == decoded, "{name}: other bytes came back");
        return;
    }
    let again = settings.encode(name, decoded);
    assert!(
        again.as_deref() == Ok(coded),
        "{name}: what came back encodes to something else\n{}\n{}",
        String::from_utf8_lossy(message),
        String::from_utf8_lossy(decoded)
    );
}
