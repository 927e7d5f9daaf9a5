//! `cargo xtask pocket`: the static library for callers in C, and how large its parts are.
//!
//! Link-time optimization merges functions of all parts, so that a part has no size of its own:
//! what a program gets is linked with the entry points that it names, and that is what is measured.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::elf::{Sizes, sizes};

/// The target of a microcontroller with a Cortex-M4F, and that of this machine.
const DEVICE: &str = "thumbv7em-none-eabihf";
const HOST: &str = "x86_64-unknown-linux-gnu";
/// Most bytes of code and data with everything in it.
const MAX_DEVICE_BYTES: u64 = 32_000;
const MAX_HOST_BYTES: u64 = 40_000;
/// The C library's name, and that of the crate's.
const LIBRARY: &str = "liblongwire.a";
const BUILT: &str = "liblongwire_pocket_c.a";

const WSP: &[&str] = &["lw_wsp_init", "lw_wsp_call"];
const COAP: &[&str] = &["lw_coap_init", "lw_coap_call"];
const WRITER: &[&str] = &[
    "lw_writer_init",
    "lw_begin",
    "lw_attribute",
    "lw_text",
    "lw_integer",
    "lw_end",
    "lw_finish",
    "lw_soap_begin",
    "lw_soap_end",
];
const READER: &[&str] = &[
    "lw_reader_init",
    "lw_soap_open",
    "lw_child",
    "lw_expect",
    "lw_skip",
    "lw_read_text",
    "lw_read_integer",
    "lw_read_fault",
];
const XML: &[&str] = &["lw_form_xml"];
const WBXML: &[&str] = &["lw_form_wbxml"];
const TOKENS: &[&str] = &["lw_tokens_soap"];
const CBOR: &[&str] = &["lw_form_cbor"];
const NAMES: &[&str] = &["lw_error_name"];

/// What is linked, and how it is called; the last one is everything.
const SETS: [(&str, &[&[&str]]); 11] = [
    ("calls over WSP", &[WSP]),
    ("calls over CoAP", &[COAP]),
    ("documents and envelope, no form", &[WRITER, READER]),
    ("  with XML", &[WRITER, READER, XML]),
    ("  with WBXML", &[WRITER, READER, WBXML]),
    ("  with WBXML and SOAP's tokens", &[WRITER, READER, WBXML, TOKENS]),
    ("  with CBOR", &[WRITER, READER, CBOR]),
    ("client: WSP, XML", &[WSP, WRITER, READER, XML]),
    ("client: WSP, WBXML, SOAP's tokens", &[WSP, WRITER, READER, WBXML, TOKENS]),
    ("client: CoAP, CBOR", &[COAP, WRITER, READER, CBOR]),
    ("everything", &[WSP, COAP, WRITER, READER, XML, WBXML, TOKENS, CBOR, NAMES]),
];

/// What is to be built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Only the library for this machine, without a table.
    pub(crate) only_builds: bool,
    /// The device's target must be there.
    pub(crate) needs_device: bool,
}

/// Builds the library, prints the table, and says whether everything is within its bounds.
pub(crate) fn run(root: &Path, options: Options) -> anyhow::Result<bool> {
    let host = build(root, None)?;
    say(&format!("library  {}", host.display()))?;
    say(&format!("header   {}", root.join("crates/pocket-c/include/longwire.h").display()))?;
    if options.only_builds {
        return Ok(true);
    }
    let mut is_good = measure(&host, HOST, MAX_HOST_BYTES)?;
    if has_target(DEVICE)? {
        let device = build(root, Some(DEVICE))?;
        is_good &= measure(&device, DEVICE, MAX_DEVICE_BYTES)?;
    } else if options.needs_device {
        bail!("no target {DEVICE}; `rustup target add {DEVICE}`");
    } else {
        say(&format!("\n{DEVICE}: skipped, `rustup target add {DEVICE}` is to come first"))?;
    }
    Ok(is_good & stack(root, &host)?)
}

/// Prints a line.
fn say(line: &str) -> anyhow::Result<()> {
    Ok(writeln!(io::stdout(), "{line}")?)
}

/// Builds the library for a target and returns its path.
fn build(root: &Path, target: Option<&str>) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["rustc", "--locked", "--package", "longwire-pocket-c", "--lib"]);
    cargo.args(["--profile", "pocket", "--crate-type", "staticlib"]);
    if let Some(target) = target {
        cargo.args(["--target", target]);
    }
    cargo.args(["--", "--cfg", "pocket_library"]);
    let status = cargo.status().context("cannot run cargo")?;
    if !status.success() {
        bail!("the library for {} was not built", target.unwrap_or(HOST));
    }
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let folder = target.map_or(folder.clone(), |target| folder.join(target)).join("pocket");
    let library = folder.join(LIBRARY);
    fs::copy(folder.join(BUILT), &library)
        .with_context(|| format!("cannot copy {BUILT} in {}", folder.display()))?;
    Ok(library)
}

fn sysroot() -> anyhow::Result<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let output = output.context("cannot run rustc")?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

fn has_target(target: &str) -> anyhow::Result<bool> {
    Ok(sysroot()?.join("lib/rustlib").join(target).join("lib").is_dir())
}

/// Links the library with some entry points, and nothing that these do not reach.
fn linked(library: &Path, entries: &[&[&str]]) -> anyhow::Result<Sizes> {
    let linker = sysroot()?.join("lib/rustlib").join(HOST).join("bin/rust-lld");
    let out = library.with_file_name("linked.elf");
    let mut command = Command::new(&linker);
    command.args(["-flavor", "gnu", "--gc-sections", "--build-id=none", "-z", "norelro"]);
    // What a C library has, such as memcpy, is the program's in any case.
    command.args(["--unresolved-symbols=ignore-all", "-e", "0"]);
    for entry in entries.iter().copied().flatten() {
        command.args(["-u", entry]);
    }
    let status = command.arg("-o").arg(&out).arg(library).status();
    let status = status.with_context(|| format!("cannot run {}", linker.display()))?;
    if !status.success() {
        bail!("{} was not linked", library.display());
    }
    let file = fs::read(&out).with_context(|| format!("cannot read {}", out.display()))?;
    sizes(&file).with_context(|| format!("{} is no ELF file", out.display()))
}

/// Prints the sizes of all sets, and says whether everything is within its bound.
fn measure(library: &Path, target: &str, max_bytes: u64) -> anyhow::Result<bool> {
    let mut text =
        format!("\n| {target} | code and constants | variables | all | tables for unwinding |\n");
    text += "| --- | ---: | ---: | ---: | ---: |\n";
    let mut last = Sizes::default();
    for (name, entries) in SETS {
        last = linked(library, entries)?;
        let Sizes { read_only, writable, unwinding } = last;
        let all = last.all();
        let _ = writeln!(text, "| {name} | {read_only} | {writable} | {all} | {unwinding} |");
    }
    let is_within = last.all() <= max_bytes;
    let verdict = if is_within { "within" } else { "OVER" };
    let _ =
        writeln!(text, "\neverything is {} bytes, {verdict} the bound of {max_bytes}", last.all());
    say(text.trim_end())?;
    Ok(is_within)
}

/// Runs the program that paints its stack, where there is a compiler of C.
fn stack(root: &Path, library: &Path) -> anyhow::Result<bool> {
    let folder = root.join("crates/pocket-c");
    let program = library.with_file_name("stack");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"]);
    compiler.arg(folder.join("include")).arg("-o").arg(&program);
    match compiler.arg(folder.join("examples/stack.c")).arg(library).status() {
        Err(_) => {
            say("\nstack: skipped, there is no cc")?;
            return Ok(true);
        }
        Ok(status) if !status.success() => bail!("examples/stack.c was not built"),
        Ok(_) => {}
    }
    say("")?;
    let status = Command::new(&program).status().context("cannot run examples/stack.c")?;
    Ok(status.success())
}
