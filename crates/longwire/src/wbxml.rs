//! `longwire wbxml`: tables of tokens that both sides of a call agree on.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use codec::Limits;
use codec::wbxml::{TokenTable, derive, tables};

use crate::terminal;

/// Longest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Bytes on a line of C or Rust.
const LINE_BYTES: usize = 16;

/// Make tables of tokens for WBXML, which both sides of a call agree on (docs/pocket.md).
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  curl -s 'http://127.0.0.1:8080/methods?wsdl' > service.wsdl
  longwire wbxml derive service.wsdl > service.tokens
  longwire gateway --wsp 127.0.0.1:9200 --wsp-tokens service.tokens ...
  longwire wbxml pack service.tokens --language c > service_tokens.h
  longwire wbxml pack soap --language raw > soap.packed")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Derive a table from a service's WSDL 1.1 document: SOAP's names and the service's.
    Derive {
        /// The document; schemas that it only imports are not seen.
        #[arg(value_name = "WSDL")]
        file: PathBuf,
    },
    /// Pack a table for the client for devices (pocket).
    Pack {
        /// The table, or the name of one that comes with longwire, such as soap.
        #[arg(value_name = "TABLE")]
        table: PathBuf,
        /// How the bytes are written.
        #[arg(long, value_name = "NAME", default_value = "c")]
        language: Language,
    },
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Language {
    /// An array of C
    C,
    /// A constant of Rust
    Rust,
    /// The bytes themselves
    Raw,
}

/// Runs the command to its end.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let made = match &args.what {
        What::Derive { file } => read(file).and_then(|wsdl| {
            let text = derive(&wsdl, &Limits::default());
            text.map(String::into_bytes).map_err(|error| format!("'{}': {error}", file.display()))
        }),
        What::Pack { table, language } => packed(table).map(|bytes| written(&bytes, *language)),
    };
    match made {
        Ok(bytes) => {
            terminal::put(&bytes).context("cannot write the table")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(line) => {
            terminal::tell(&line);
            Ok(ExitCode::from(2))
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    let wrong = |error: std::io::Error| format!("'{}': {error}", file.display());
    let mut bytes = Vec::new();
    // What a file says of its length need not be so: that of a device or a pipe is none.
    let opened = File::open(file).map_err(wrong)?;
    opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let line = "is longer than what is read, which is at most";
        return Err(format!("'{}' {line} {MAX_FILE_BYTES} bytes", file.display()));
    }
    Ok(bytes)
}

fn packed(table: &Path) -> Result<Vec<u8>, String> {
    let name = table.to_string_lossy();
    let known = tables().iter().find(|known| known.name.eq_ignore_ascii_case(&name));
    let read_table;
    let known = match known {
        Some(known) if !table.exists() => known,
        _ => {
            let text = String::from_utf8(read(table)?).map_err(|_| "a table is UTF-8".to_owned());
            read_table = TokenTable::parse(&text?).map_err(|error| format!("'{name}': {error}"))?;
            &read_table
        }
    };
    known.packed().map_err(|error| format!("'{name}': {error}"))
}

fn written(bytes: &[u8], language: Language) -> Vec<u8> {
    let mut text = match language {
        Language::Raw => return bytes.to_vec(),
        Language::C => format!("static const unsigned char tokens[{}] = {{\n", bytes.len()),
        Language::Rust => format!("pub const TOKENS: [u8; {}] = [\n", bytes.len()),
    };
    for line in bytes.chunks(LINE_BYTES) {
        text.push_str("   ");
        for byte in line {
            // Writing to a string cannot fail.
            let _ = write!(text, " 0x{byte:02x},");
        }
        text.push('\n');
    }
    text.push_str(match language {
        Language::Rust => "];\n",
        _ => "};\n",
    });
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_end_is_refused() {
        let wrong = read(Path::new("/dev/zero")).unwrap_err();
        assert!(wrong.contains("at most 16777216 bytes"), "{wrong}");
    }

    #[test]
    fn a_table_is_packed_for_each_language() {
        let bytes = packed(Path::new("soap")).unwrap();
        assert_eq!(written(&bytes, Language::Raw), bytes);
        let text = |language| String::from_utf8(written(&bytes[..18], language)).unwrap();
        assert_eq!(
            text(Language::C).lines().next(),
            Some("static const unsigned char tokens[18] = {")
        );
        assert!(
            text(Language::Rust).starts_with("pub const TOKENS: [u8; 18] = [\n    0x00, 0x00,")
        );
        assert_eq!(
            (text(Language::C).lines().count(), text(Language::Rust).lines().count()),
            (4, 4)
        );
        assert!(packed(Path::new("/nowhere/a.tokens")).unwrap_err().contains("/nowhere/a.tokens"));
    }
}
