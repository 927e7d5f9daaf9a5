//! Tells the binary which commit it is built from, for its reports.

use std::process::Command;

fn main() {
    // Any source, and the moves of branches: then the commit, or what differs from it, is new.
    for path in ["..", "../../Cargo.lock", "../../.git/HEAD", "../../.git/logs/HEAD"] {
        if std::path::Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    let mut shown = version.to_string();
    // Outside of a repository the binary does not know.
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        let changes = git(&["status", "--porcelain", "--untracked-files=no", "--", ".."]);
        let changed = changes.is_none_or(|list| !list.is_empty());
        let commit = format!("{commit}{}", if changed { "+" } else { "" });
        println!("cargo::rustc-env=LONGWIRE_COMMIT={commit}");
        shown = format!("{version} ({commit})");
    }
    println!("cargo::rustc-env=LONGWIRE_VERSION={shown}");
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = output.status.success().then_some(output.stdout)?;
    Some(String::from_utf8(text).ok()?.trim().to_string())
}
