//! Messages and streams that are made to hurt, for every codec of the table: memory within the
//! limits, and errors that say where. The bench program `codec_hostile` tells what time they cost.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Tests.

mod common;
#[path = "common/hostile.rs"]
mod hostile;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::settings;
use hostile::Trap;
use longwire_codec::exi::schema::Document;
use longwire_codec::exi::{Options, Schema};
use longwire_codec::{CODECS, Codec, Error, Limits, Settings};

/// Counts what a thread allocates.
struct Counting;

thread_local! {
    static HELD_BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let held = HELD_BYTES.get() + bytes;
    HELD_BYTES.set(held);
    PEAK_BYTES.set(PEAK_BYTES.get().max(held));
}

// SAFETY: every call goes to the system's allocator as it came; counting changes nothing of it, and
// its cells have neither a constructor nor a destructor that could allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that `work` held beyond what was there.
fn peak(work: impl FnOnce()) -> usize {
    let before = HELD_BYTES.get();
    PEAK_BYTES.set(before);
    work();
    (PEAK_BYTES.get() - before).unsigned_abs()
}

/// Length of most inputs: with [`limits`], enough to reach them.
const LEN: usize = 8 << 10;
/// Of those of a codec that takes microseconds a byte.
const SLOW_LEN: usize = 1 << 10;
/// What contexts take through Rust that goes by the codec and not by the input.
const CONTEXT_BYTES: usize = 2 << 20;
/// That of brotli's tables for matches.
const BROTLI_BYTES: usize = 24 << 20;

fn limits() -> Limits {
    let (output_bytes, message_bytes) = (256 << 10, 256 << 10);
    Limits { output_bytes, message_bytes, table_bytes: 1 << 20, ..Limits::default() }
}

/// Twice the limits: what grows by doubling is there twice while it is copied.
fn allowed_bytes(what: &str, limits: &Limits) -> usize {
    let output_bytes = usize::try_from(limits.output_bytes).unwrap();
    let is_brotli = what.starts_with("brotli") || what.starts_with("dcb");
    let context_bytes = if is_brotli { BROTLI_BYTES } else { CONTEXT_BYTES };
    2 * (output_bytes + limits.message_bytes + limits.table_bytes) + context_bytes
}

fn is_slow(codec: &dyn Codec) -> bool {
    codec.name() == "mix-dictionary"
}

fn prepared(codec: &dyn Codec) -> (Settings, &'static [Trap]) {
    let properties = codec.properties();
    let level = codec.levels().map(|(least, ..)| least);
    let settings = Settings { level, limits: limits(), ..settings(codec) };
    let traps = if properties.applies_to("application/octet-stream") {
        hostile::BYTES
    } else if properties.applies_to("application/json") {
        hostile::JSON
    } else {
        hostile::XML
    };
    (settings, traps)
}

/// Takes one input: within memory, and an error that says where or which limit.
fn check(what: &str, limits: &Limits, work: impl FnOnce() -> Result<Vec<u8>, Error>) -> bool {
    let mut result = Ok(Vec::new());
    let taken = peak(|| result = work());
    let most = allowed_bytes(what, limits);
    assert!(taken <= most, "{what}: {taken} bytes of memory, {most} allowed");
    match &result {
        Ok(out) => assert!(out.len() as u64 <= limits.output_bytes.max(1 << 20), "{what}"),
        Err(Error::Malformed { .. } | Error::Limit { .. } | Error::Option { .. }) => {}
        Err(error) => panic!("{what}: nothing says where: {error}"),
    }
    result.is_ok()
}

#[test]
fn hostile_messages_are_refused_or_taken_within_memory() {
    for &codec in CODECS {
        let (settings, traps) = prepared(codec);
        let len = if is_slow(codec) { SLOW_LEN } else { LEN };
        let mut taken = 0;
        for trap in traps {
            let message = (trap.make)(len);
            let what = format!("{}, encode: {}", codec.name(), trap.name);
            let work = || settings.encode(codec.name(), &message);
            taken += usize::from(check(&what, &settings.limits, work));
        }
        println!("{}: {taken} of {} hostile messages are taken", codec.name(), traps.len());
    }
}

#[test]
fn hostile_streams_are_refused_or_taken_within_memory() {
    for &codec in CODECS {
        let (settings, traps) = prepared(codec);
        let len = if is_slow(codec) { SLOW_LEN } else { LEN };
        let coded = |message: &[u8]| settings.encode(codec.name(), message).ok();
        let mut streams: Vec<(String, Vec<u8>)> = Vec::new();
        for trap in traps {
            let stream = coded(&(trap.make)(len));
            streams.extend(stream.map(|stream| (trap.name.to_owned(), stream)));
        }
        for trap in hostile::streams(codec.name()) {
            streams.push((trap.name.to_owned(), (trap.make)(len)));
        }
        let usual = traps.iter().rev().find_map(|trap| coded(&(trap.make)(len))).unwrap();
        for part in 0..16 {
            let cut = usual[..usual.len() * part / 16].to_vec();
            streams.push((format!("{part}/16 of a stream"), cut));
        }
        for head in (0..24).chain([40, 64]).filter(|head| *head < usual.len()) {
            for fill in [0, 0xff, 0x80, 0x7f] {
                let stream = [&usual[..head], &vec![fill; len]].concat();
                streams.push((format!("{head} bytes of a stream, then {fill:#04x}"), stream));
            }
        }
        let mut taken = 0;
        for (name, stream) in &streams {
            let what = format!("{}, decode: {name}", codec.name());
            let work = || settings.decode(codec.name(), stream);
            taken += usize::from(check(&what, &settings.limits, work));
        }
        println!("{}: {taken} of {} hostile streams are taken", codec.name(), streams.len());
    }
}

/// A few bytes that stand for many end at the limit.
#[test]
fn bombs_end_at_the_limit() {
    for &codec in CODECS.iter().filter(|codec| codec.name() != "identity") {
        let (settings, _) = prepared(codec);
        let roomy = Settings { limits: Limits::default(), ..settings.clone() };
        let zeros = vec![b'0'; 1 << 20];
        let json = codec.properties().media.contains(&"application/json");
        let message = match json {
            true => [&b"\""[..], &zeros, b"\""].concat(),
            false => [&b"<r>"[..], &zeros, b"</r>"].concat(),
        };
        let bomb = roomy.encode(codec.name(), &message).unwrap();
        let decoded = settings.decode(codec.name(), &bomb);
        let name = codec.name();
        assert!(
            matches!(decoded, Err(Error::Limit { .. })),
            "{name}: {:?}",
            decoded.map(|d| d.len())
        );
        check(name, &settings.limits, || settings.decode(name, &bomb));
    }
}

#[test]
fn hostile_schemas_are_refused_or_taken_within_memory() {
    let limits = limits();
    for trap in hostile::SCHEMAS {
        let bytes = (trap.make)(LEN);
        let document = Document { location: "hostile.xsd", bytes: &bytes };
        let compile = || {
            let schema = Schema::parse(&[document], &mut |_, _| None, &limits)?;
            schema.grammars(&Options::default(), &limits).map(|_| Vec::new())
        };
        let is_taken = check(trap.name, &limits, compile);
        println!("{}: {}", trap.name, if is_taken { "taken" } else { "refused" });
    }
}

/// The error names the place: behind what is right, where it is clear what is wrong.
#[test]
fn errors_say_where() {
    let message = hostile::usual_xml(LEN);
    for name in ["deflate", "brotli", "exi", "wbxml", "cbor-xml", "xmill"] {
        let codec = longwire_codec::find(name).unwrap();
        let (settings, _) = prepared(codec);
        let settings = Settings { limits: Limits::default(), ..settings };
        let mut stream = settings.encode(name, &message).unwrap();
        let end = stream.len() as u64;
        stream.extend([0; 9]);
        let error = settings.decode(name, &stream).unwrap_err();
        let Error::Malformed { offset, .. } = error else { panic!("{name}: {error}") };
        // Bits that do not fill their byte are wrong in it.
        assert!((end - 1..=end + 9).contains(&offset), "{name}: {offset}, the end is {end}");
    }
}
