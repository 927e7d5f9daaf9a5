//! Benchmark of our WBXML against libwbxml.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Write as _;
use std::io::{Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use codec::Limits;
use codec::wbxml::{Encoder, Settings, decode, encode};
use longwire_bench::machine::describe;
use longwire_bench::markdown::{Document, Table};
use longwire_bench::statistics::median;

/// The section of a document that `--markdown` keeps.
const SECTION: &str = "codec_wbxml";
/// How many times as fast as libwbxml we want to be.
const WANTED_ENCODE: f64 = 6.0;
const WANTED_DECODE: f64 = 4.0;
/// Large documents are made of small ones up to this size.
// libwbxml's time grows with the square of an element's children: more would flatter us.
const LARGE_BYTES: usize = 1 << 15;

/// Measure our WBXML against libwbxml, called as a library in the same process, in turns.
///
/// Documents are those of others under $LONGWIRE_DATA that libwbxml encodes: the small ones as they
/// are, and large ones made by repeating the content of some. Both sides drop white space between
/// elements and share repeated texts; both decode what libwbxml encoded. In the rows 'one encoder'
/// an encoder is kept from document to document, as one who encodes many would; libwbxml has no
/// such thing. The exit status is 1 when a figure misses what is wanted. The peer comes with
/// `apt install libwbxml2-1`.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// Short turns: shows that it works, proves nothing.
    #[arg(long)]
    quick: bool,
    /// Put the table into this document too, between `<!-- codec_wbxml: begin -->` and its end.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

type Create = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
type Run = unsafe extern "C" fn(*mut c_void, *mut u8, u32, *mut *mut u8, *mut u32) -> c_int;
type Destroy = unsafe extern "C" fn(*mut c_void);

/// One direction of libwbxml.
struct Way {
    create: Create,
    run: Run,
    destroy: Destroy,
}

impl Way {
    /// Finds `wbxml_conv_NAME_create`, `_run` and `_destroy`.
    fn open(library: *mut c_void, name: &str) -> Result<Self> {
        let symbol = |what: &str| {
            let symbol = format!("wbxml_conv_{name}_{what}\0");
            // SAFETY: the library is open and the name ends with a zero.
            let found = unsafe { libc::dlsym(library, symbol.as_ptr().cast::<c_char>()) };
            if found.is_null() { bail!("libwbxml has no {symbol}") } else { Ok(found) }
        };
        let (create, run, destroy) = (symbol("create")?, symbol("run")?, symbol("destroy")?);
        // SAFETY: these are the types that wbxml_conv.h of libwbxml 0.11 declares, where WB_ULONG
        // is 32 bits.
        unsafe {
            Ok(Self {
                create: std::mem::transmute::<*mut c_void, Create>(create),
                run: std::mem::transmute::<*mut c_void, Run>(run),
                destroy: std::mem::transmute::<*mut c_void, Destroy>(destroy),
            })
        }
    }

    /// What libwbxml makes of the input; `None` if it refuses.
    fn convert(&self, input: &[u8]) -> Option<Vec<u8>> {
        let (mut made, mut len) = (std::ptr::null_mut(), 0);
        let mut context = std::ptr::null_mut();
        let input_len = u32::try_from(input.len()).ok()?;
        // SAFETY: the input outlives the call and is only read; what is made belongs to us and is
        // freed with the allocator that it came from.
        unsafe {
            if (self.create)(&raw mut context) != 0 {
                return None;
            }
            let status = (self.run)(
                context,
                input.as_ptr().cast_mut(),
                input_len,
                &raw mut made,
                &raw mut len,
            );
            (self.destroy)(context);
            if status != 0 || made.is_null() {
                return None;
            }
            let copy = std::slice::from_raw_parts(made, len as usize).to_vec();
            libc::free(made.cast());
            Some(copy)
        }
    }
}

/// Documents that are measured together.
#[derive(Clone)]
struct Group {
    name: String,
    /// Whether an encoder of ours is kept.
    kept: bool,
    xml: Vec<Vec<u8>>,
    streams: Vec<Vec<u8>>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match measure(&cli) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // The status tells it too.
            let _ = writeln!(stderr(), "codec_wbxml: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn libwbxml() -> Result<(Way, Way)> {
    // SAFETY: the name ends with a zero; loading runs only the library's own initialisers.
    let library = unsafe { libc::dlopen(c"libwbxml2.so.1".as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        // SAFETY: dlopen failed, so that there is a message, and nobody else opens libraries.
        let why = unsafe { CStr::from_ptr(libc::dlerror()) };
        bail!("{}: apt install libwbxml2-1", why.to_string_lossy());
    }
    Ok((Way::open(library, "xml2wbxml")?, Way::open(library, "wbxml2xml")?))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "xml") {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

/// The document with what its root holds again and again.
fn repeated(document: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(document).ok()?;
    let root = text.match_indices('<').map(|(at, _)| at);
    let begin = root
        .into_iter()
        .find(|at| text[at + 1..].starts_with(|first: char| first.is_ascii_alphabetic()))?;
    let open = begin + text[begin..].find('>')? + 1;
    let close = text.rfind("</")?;
    let inside = text.get(open..close).filter(|inside| inside.trim().len() > 20)?;
    let times = LARGE_BYTES.div_ceil(inside.len());
    Some([&text[..open], &inside.repeat(times), &text[close..]].concat().into_bytes())
}

/// Only what both can convert both ways: what one refuses costs it no time.
fn groups(there: &Way, back: &Way) -> Result<Vec<Group>> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let data = std::env::var_os("LONGWIRE_DATA").map(PathBuf::from);
    let data = data.unwrap_or_else(|| workspace.join("../shared/data")).join("wbxml");
    let mut found = Vec::new();
    files(&data, &mut found)?;
    let mut small =
        Group { name: "small".to_owned(), kept: false, xml: Vec::new(), streams: Vec::new() };
    let mut groups = Vec::<Group>::new();
    for path in found {
        let xml = std::fs::read(&path)?;
        let Some(stream) = there.convert(&xml) else { continue };
        if back.convert(&stream).is_none() || !ours_can(&xml, &stream) {
            continue;
        }
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
        let name = format!("large, {}", folder.to_string_lossy());
        let wanted = ["syncml11", "wml"].map(|name| format!("large, {name}"));
        let large = repeated(&xml)
            .filter(|_| wanted.contains(&name) && groups.iter().all(|group| group.name != name));
        if let Some(large) = large
            && let Some(stream) = there.convert(&large)
        {
            groups.push(Group { name, kept: false, xml: vec![large], streams: vec![stream] });
        }
        small.xml.push(xml);
        small.streams.push(stream);
    }
    let kept = Group { name: "small, one encoder".to_owned(), kept: true, ..small.clone() };
    groups.splice(0..0, [small, kept]);
    Ok(groups)
}

fn ours_can(xml: &[u8], stream: &[u8]) -> bool {
    let (settings, limits) = (Settings::default(), Limits::default());
    encode(xml, &settings, &limits).is_ok() && decode(stream, &settings, &limits).is_ok()
}

/// Seconds that one pass over all takes, in turns of some milliseconds.
fn pass_s(turn: Duration, mut pass: impl FnMut() -> Result<()>) -> Result<f64> {
    let begin = Instant::now();
    let mut passes = 0_u32;
    while begin.elapsed() < turn {
        pass()?;
        passes += 1;
    }
    Ok(begin.elapsed().as_secs_f64() / f64::from(passes.max(1)))
}

/// Medians of ours and theirs, and of the ratios of neighbouring turns.
fn compared(
    cli: &Cli,
    mut ours: impl FnMut() -> Result<()>,
    mut theirs: impl FnMut() -> Result<()>,
) -> Result<[f64; 3]> {
    let turn = Duration::from_millis(if cli.quick { 20 } else { 300 });
    let rounds = if cli.quick { 3 } else { 9 };
    let (mut us, mut them, mut ratio) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=rounds {
        let (a, b) = (pass_s(turn, &mut ours)?, pass_s(turn, &mut theirs)?);
        // The first warms up.
        if round > 0 {
            us.push(a);
            them.push(b);
            ratio.push(b / a);
        }
    }
    Ok([median(us), median(them), median(ratio)])
}

/// One group's line, and whether it is as fast as wanted.
fn row(
    cli: &Cli,
    group: &Group,
    (there, back): (&Way, &Way),
    (settings, limits): (&Settings, &Limits),
) -> Result<([String; 13], bool)> {
    let bytes: usize = group.xml.iter().map(Vec::len).sum();
    let (mut coded, mut decoded) = (0, 0);
    for (xml, stream) in group.xml.iter().zip(&group.streams) {
        coded += encode(xml, settings, limits)?.len();
        decoded += decode(stream, settings, limits).map_or(0, |xml| xml.len());
    }
    let their_coded: usize = group.streams.iter().map(Vec::len).sum();
    let mut encoder = Encoder::new(settings, limits);
    let mut encode = |xml: &[u8]| match group.kept {
        true => encoder.encode(xml),
        false => encode(xml, settings, limits),
    };
    let encoding = compared(
        cli,
        || {
            let mut documents = group.xml.iter();
            documents.try_for_each(|xml| encode(xml).map(drop)).map_err(Into::into)
        },
        || {
            group.xml.iter().for_each(|xml| drop(there.convert(xml)));
            Ok(())
        },
    )?;
    let decoding = compared(
        cli,
        || {
            let mut streams = group.streams.iter();
            streams.try_for_each(|s| decode(s, settings, limits).map(drop)).map_err(Into::into)
        },
        || {
            group.streams.iter().for_each(|s| drop(back.convert(s)));
            Ok(())
        },
    )?;
    // Minutes pass between the groups.
    let (name, times) = (&group.name, [encoding[2], decoding[2]]);
    let _ = writeln!(stderr(), "{name}: {:.1} times encoding, {:.1} decoding", times[0], times[1]);
    let fine = encoding[2] >= WANTED_ENCODE && decoding[2] >= WANTED_DECODE;
    let rate = |bytes: usize, seconds: f64| format!("{:.0}", bytes as f64 / seconds / 1e6);
    let number = group.xml.len();
    let row = [
        group.name.clone(),
        number.to_string(),
        format!("{:.0}", bytes as f64 / 1e3),
        coded.to_string(),
        their_coded.to_string(),
        rate(bytes, encoding[0]),
        rate(bytes, encoding[1]),
        format!("{:.1}", encoding[2]),
        rate(decoded, decoding[0]),
        rate(decoded, decoding[1]),
        format!("{:.1}", decoding[2]),
        format!("{:.0}", number as f64 / encoding[0]),
        format!("{:.0}", number as f64 / encoding[1]),
    ];
    Ok((row, fine))
}

fn measure(cli: &Cli) -> Result<bool> {
    let document = |path| Document::open(path, SECTION);
    let document = cli.markdown.clone().map(document).transpose()?;
    let (there, back) = libwbxml()?;
    let settings = Settings { keep_white_space: false, ..Settings::default() };
    let limits = Limits { depth: 1000, ..Limits::default() };
    let heads = [
        "documents",
        "number",
        "XML KB",
        "WBXML ours",
        "libwbxml",
        "encode MB/s",
        "libwbxml",
        "times",
        "decode MB/s",
        "libwbxml",
        "times",
        "messages/s",
        "libwbxml",
    ];
    let mut table = Table::new(&heads);
    let mut fine = true;
    for group in groups(&there, &back)? {
        let (row, is_fast) = row(cli, &group, (&there, &back), (&settings, &limits))?;
        table.row(row);
        fine &= is_fast;
    }
    let machine = longwire_bench::machine::render(&describe(SECTION));
    let mut text = format!("{machine}\n{}", table.render());
    let _ =
        writeln!(text, "\nWanted: {WANTED_ENCODE} times encoding, {WANTED_DECODE} times decoding.");
    stdout().write_all(text.as_bytes())?;
    if let Some(document) = document {
        document.update(&text)?;
    }
    Ok(fine)
}
