//! Every SOAP message of other people's data, through the pair, both ways, in every encoding.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::path::{Path, PathBuf};

use common::origin::Origin;
use common::{pair, send};

/// Largest file that is sent.
const MAX_FILE_BYTES: u64 = 16 << 20;

fn files_under(dir: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => files_under(&path, files),
            Ok(meta) if meta.len() > 0 && meta.len() <= MAX_FILE_BYTES => files.push(path),
            _ => {}
        }
    }
}

#[tokio::test]
async fn every_soap_message_comes_back_as_it_went() {
    let data = std::env::var_os("LONGWIRE_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let mut files = Vec::new();
    files_under(&data.join("soap"), &mut files);
    if files.is_empty() {
        println!("skipped 4 encodings: no files under {}", data.join("soap").display());
        return;
    }
    let origin = Origin::start().await;
    for encoding in ["auto", "identity", "deflate", "zstd"] {
        let settings = format!("encoding = '{encoding}'");
        let (edge, _gateway) = pair(&settings, &settings).await;
        for file in &files {
            let body = std::fs::read(file).unwrap();
            let fields = "Content-Type: text/xml; charset=utf-8\r\n";
            let echo = send(edge.address, "POST", &origin.url("/echo"), fields, &body).await;
            assert!(echo.body == body, "{encoding}: {}", file.display());
        }
    }
    println!("{} files in 4 encodings", files.len());
}
