//! What the contexts of deflate and brotli really take against what the table of codecs says: the
//! relay's budget of codec memory is only as true as that.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Tests.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, Mutex};

use longwire_codec::{Limits, Options, exi};

/// Counts what is allocated through Rust.
struct Counting;

static HELD_BYTES: AtomicIsize = AtomicIsize::new(0);
/// The most that was held since it was last set.
static PEAK_BYTES: AtomicIsize = AtomicIsize::new(0);
/// The counters are one, so tests take turns.
static TURN: Mutex<()> = Mutex::new(());

// SAFETY: every call goes to the system's allocator as it came; counting changes nothing of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size().cast_signed();
        let held = HELD_BYTES.fetch_add(size, Ordering::SeqCst) + size;
        PEAK_BYTES.fetch_max(held, Ordering::SeqCst);
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD_BYTES.fetch_sub(layout.size().cast_signed(), Ordering::SeqCst);
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn held_bytes() -> isize {
    HELD_BYTES.load(Ordering::SeqCst)
}

/// Text whose repetitions lie far apart, so that windows and tables fill.
fn text(len: usize) -> Vec<u8> {
    (0_u64..)
        .flat_map(|line| {
            let mixed = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30;
            format!("<track id='{line}'><lat>{mixed}</lat></track>\n").into_bytes()
        })
        .take(len)
        .collect()
}

/// Bytes held by an encoder and a decoder after a body of several windows, in 64 KiB blocks.
fn taken(options: Options, body: &[u8]) -> (usize, usize) {
    let mut encoded: Vec<Vec<u8>> = Vec::with_capacity(body.len() / 65_536 + 1);
    let before = held_bytes();
    let mut encoder = options.encoder().unwrap();
    for block in body.chunks(65_536) {
        let mut out = Vec::new();
        encoder.encode(block, false, &mut out).unwrap();
        encoded.push(out);
    }
    let out_bytes: usize = encoded.iter().map(Vec::capacity).sum();
    let encoder_bytes = held_bytes() - before - out_bytes.cast_signed();
    drop(encoder);
    let before = held_bytes();
    let mut decoder = options.decoder().unwrap();
    for (block, plain) in encoded.iter().zip(body.chunks(65_536)) {
        decoder.decode(block, plain.len(), false, &mut Vec::new()).unwrap();
    }
    (encoder_bytes.unsigned_abs(), (held_bytes() - before).unsigned_abs())
}

/// Deflate is Rust throughout, so its memory is what the allocator counts. (That of zstd is known
/// from zstd itself, in the crate's own tests.)
#[test]
fn deflate_takes_what_the_table_says() {
    let _turn = TURN.lock();
    let body = text(300_000);
    for level in 1..=9 {
        let options = Options::of(&format!("deflate:{level}")).unwrap();
        let codec = options.codec;
        let (encoder, decoder) = taken(options, &body);
        let said = (codec.encoder_bytes(options), codec.decoder_bytes(options));
        println!("{}: {encoder} of {}, {decoder} of {}", options.label(), said.0, said.1);
        assert!((said.0 / 2..=said.0).contains(&encoder), "{encoder} of {}", said.0);
        assert!((said.1 / 4..=said.1).contains(&decoder), "{decoder} of {}", said.1);
    }
}

/// The most that is held while `work` runs, beyond what was held before.
fn peak(work: impl FnOnce()) -> usize {
    let before = held_bytes();
    PEAK_BYTES.store(before, Ordering::SeqCst);
    work();
    (PEAK_BYTES.load(Ordering::SeqCst) - before).unsigned_abs()
}

/// The most that an encoder and a decoder hold while `body` goes through them in blocks.
fn peaks(options: Options, body: &[u8]) -> (usize, usize) {
    let (mut coded, mut lens) = (Vec::with_capacity(1 << 20), Vec::new());
    let encoder = peak(|| {
        let mut encoder = options.encoder().unwrap();
        for block in body.chunks(65_536) {
            let before = coded.len();
            encoder.encode(block, false, &mut coded).unwrap();
            lens.push(coded.len() - before);
        }
    });
    let (mut rest, mut out) = (&coded[..], Vec::with_capacity(1 << 17));
    let decoder = peak(|| {
        let mut decoder = options.decoder().unwrap();
        for (len, plain) in lens.iter().zip(body.chunks(65_536)) {
            let (block, tail) = rest.split_at(*len);
            rest = tail;
            out.clear();
            decoder.decode(block, plain.len(), false, &mut out).unwrap();
        }
    });
    (encoder, decoder)
}

/// So is brotli, which takes much while it works on a block and gives it back.
#[test]
fn brotli_takes_what_the_table_says() {
    let _turn = TURN.lock();
    let body = text(1_200_000);
    for (level, window_log) in (0..=11).flat_map(|level| [(level, 15), (level, 20)]) {
        let options = Options { window_log, ..Options::of(&format!("brotli:{level}")).unwrap() };
        let codec = options.codec;
        // Strong levels are slow, and their memory is there from the first blocks on.
        let body = if level > 9 { &body[..200_000] } else { &body[..] };
        let (encoder, decoder) = peaks(options, body);
        let said = (codec.encoder_bytes(options), codec.decoder_bytes(options));
        let at = options.label();
        println!("{at} 2^{window_log}: {encoder} of {}, {decoder} of {}", said.0, said.1);
        assert!((said.0 / 16..=said.0).contains(&encoder), "{at}: {encoder} of {}", said.0);
        assert!(decoder <= said.1, "{at}: {decoder} of {}", said.1);
    }
}

/// So is xmill but for what is inside it.
#[test]
fn xmill_takes_what_the_table_says() {
    let _turn = TURN.lock();
    let body = text(600_000);
    for (level, window_log) in [1, 5, 9].into_iter().flat_map(|level| [(level, 15), (level, 20)]) {
        let options = Options { window_log, ..Options::of(&format!("xmill:{level}")).unwrap() };
        let codec = options.codec;
        let (encoder, decoder) = peaks(options, &body);
        let said = (codec.encoder_bytes(options), codec.decoder_bytes(options));
        let at = options.label();
        println!("{at} 2^{window_log}: {encoder} of {}, {decoder} of {}", said.0, said.1);
        assert!(encoder <= said.0, "{at}: {encoder} of {}", said.0);
        assert!(decoder <= said.1, "{at}: {decoder} of {}", said.1);
    }
}

/// A decoder of EXI that is kept gives back what large documents took, whatever they filled.
#[test]
fn a_kept_decoder_stays_small() {
    let _turn = TURN.lock();
    let (options, limits) = (exi::Options::default(), Limits::default());
    let many = |one: &dyn Fn(u32) -> String| {
        let all: String = (0..30_000).map(one).collect();
        exi::encode(format!("<r>{all}</r>").as_bytes(), &options, None, &limits).unwrap()
    };
    let streams = [
        many(&|at| format!("<n{at}>{at}</n{at}>")),
        many(&|at| format!("<n xmlns='urn:{at}'/>")),
        many(&|at| format!("<a>a{at}</a>")),
        many(&|at| format!("<b>b{at}</b>")),
        many(&|at| format!("<c x{at}='1'/>")),
        many(&|at| format!("<d>{}</d>", at.to_string().repeat(200))),
    ];
    let before = held_bytes();
    let mut decoder = exi::Decoder::new(&options, Box::new(|_| Ok(None)), &limits);
    for stream in &streams {
        decoder.decode(stream, &mut Vec::new()).unwrap();
        decoder.reset();
    }
    decoder
        .decode(&exi::encode(b"<a/>", &options, None, &limits).unwrap(), &mut Vec::new())
        .unwrap();
    let held = (held_bytes() - before).unsigned_abs();
    println!("exi: {held} held");
    assert!(held < 20 << 20, "{held}");
}

/// Texts of a block of channels are held once, also for who wants strings.
#[test]
fn a_block_of_values_is_held_once() {
    let _turn = TURN.lock();
    let xsd = b"<s:schema xmlns:s='http://www.w3.org/2001/XMLSchema'><s:element name='a'>\
        <s:simpleType><s:list itemType='s:int'/></s:simpleType></s:element></s:schema>";
    let limits = Limits::default();
    let document = exi::schema::Document { location: "", bytes: xsd };
    let schema = exi::Schema::parse(&[document], &mut |_, _| None, &limits).unwrap();
    let options =
        exi::Options { alignment: exi::Alignment::PreCompression, ..exi::Options::default() };
    let grammars = Arc::new(schema.grammars(&options, &limits).unwrap());
    // As much as a buffer that grows by doubling has room for.
    let text = "1234567 ".repeat((8 << 20) / 8 - 1);
    let xml = format!("<a>{text}1</a>");
    let stream = exi::encode(xml.as_bytes(), &options, Some(&grammars), &limits).unwrap();
    let mut length = 0;
    let held = peak(|| {
        let resolve = Box::new(|_: &exi::Options| Ok(Some(grammars.clone())));
        let mut decoder = exi::Decoder::new(&options, resolve, &limits);
        decoder.push(&stream, true).unwrap();
        while let Some(event) = decoder.next().unwrap() {
            if let exi::Event::Characters(text) = event {
                length += text.len();
            }
        }
    });
    println!("exi: {held} held for {length}");
    assert_eq!(length, text.len() + 1);
    assert!(held < stream.len() + length * 7 / 4, "{held}");
}
