//! The files of the tree: what git would commit, else what is there.

use std::io;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

/// Bound on the files of a tree without git, so that a wrong `--root` ends with an error.
const MAX_FILES: usize = 20_000;

/// A text file, its path relative to the root and with `/`.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every text file of the tree in order of path; files that are not UTF-8 are left out.
pub(crate) fn read(root: &Path) -> anyhow::Result<Vec<File>> {
    let mut paths = if root.join(".git").exists() { tracked(root)? } else { walk(root)? };
    paths.sort();
    paths.dedup();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        match std::fs::read(root.join(&path)) {
            Ok(bytes) => {
                if let Ok(text) = String::from_utf8(bytes) {
                    files.push(File { path, text });
                }
            }
            // Tracked, but removed from the work tree and not yet committed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {path}")),
        }
    }
    Ok(files)
}

/// Tracked files and new ones that are not ignored, so that a finding comes before the commit.
fn tracked(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot run git; install it")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    Ok(names.split_terminator('\0').map(str::to_owned).collect())
}

fn walk(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut folders = vec![String::new()];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name == "target" || name == ".git" {
                continue;
            }
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                paths.push(path);
            }
            if paths.len() + folders.len() > MAX_FILES {
                bail!("more than {MAX_FILES} files; is this the workspace? name it with --root");
            }
        }
    }
    Ok(paths)
}
