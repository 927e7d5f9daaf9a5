//! Manual pages and completions, as a package has them.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.
#![allow(clippy::print_stdout)] // Tests say why they are skipped.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("longwire-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        Self(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn longwire(args: &[&str]) -> String {
    let Output { status, stdout, stderr } =
        Command::new(env!("CARGO_BIN_EXE_longwire")).args(args).output().unwrap();
    assert!(status.success(), "{args:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// The commands below one, as its help lists them, with all below these.
fn commands(above: &[String]) -> Vec<Vec<String>> {
    let mut args: Vec<&str> = above.iter().map(String::as_str).collect();
    args.push("--help");
    let help = longwire(&args);
    let list = help.split("Commands:\n").nth(1).unwrap_or_default();
    let named = |line: &str| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    };
    let names = list.lines().take_while(|line| !line.is_empty()).filter_map(named);
    let mut all = Vec::new();
    for name in names {
        let command = [above, &[name]].concat();
        all.extend(commands(&command));
        all.push(command);
    }
    all
}

#[test]
fn every_command_has_a_page_without_empty_sections() {
    let dir = Dir::new("man");
    let said = longwire(&["man", dir.0.to_str().unwrap()]);
    let mut names = BTreeSet::from(["longwire.1".to_owned()]);
    names.extend(commands(&[]).iter().map(|command| format!("longwire-{}.1", command.join("-"))));
    assert!(names.len() > 60 && names.contains("longwire-lab-net-run.1"), "{names:?}");
    let files = fs::read_dir(&dir.0).unwrap().map(|file| file.unwrap().file_name());
    let files: BTreeSet<_> = files.map(|name| name.into_string().unwrap()).collect();
    assert_eq!(files, names);
    assert!(said.starts_with(&format!("{} pages", names.len())), "{said}");

    for name in &names {
        let page = fs::read_to_string(dir.0.join(name)).unwrap();
        for expected in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS"] {
            assert!(page.contains(expected), "{name} has no {expected}");
        }
        for section in page.split("\n.SH ").skip(1) {
            let (heading, body) = section.split_once('\n').unwrap_or((section, ""));
            let has_text = body.lines().any(|line| !line.starts_with('.') && !line.is_empty());
            assert!(has_text, "{name}: {heading} is empty");
        }
    }
    let page = fs::read_to_string(dir.0.join("longwire-keygen.1")).unwrap();
    let shown = "  longwire keygen edge\\-keys \\-\\-name edge\\-1 \\-\\-role edge\n";
    assert!(page.contains(".SH EXAMPLES\n.nf\n") && page.contains(shown), "{page}");
    lint(&dir);
}

/// Programs of others that read such pages, where they are installed.
fn lint(dir: &Dir) {
    let files: Vec<_> = fs::read_dir(&dir.0).unwrap().map(|file| file.unwrap().path()).collect();
    match Command::new("mandoc").args(["-T", "lint", "-W", "error"]).args(&files).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.is_empty(), "{text}");
        }
        Err(error) => println!("mandoc is left out: {error}"),
    }
    for file in &files {
        let mut man = Command::new("man");
        man.args(["--warnings", "-l"]).arg(file).env("MANWIDTH", "120").env("LC_ALL", "C.UTF-8");
        match man.stdin(Stdio::null()).output() {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && text.is_empty(), "{}: {text}", file.display());
                assert!(output.stdout.len() > 200, "{}", file.display());
            }
            Err(error) => return println!("man is left out: {error}"),
        }
    }
}

#[test]
fn every_shell_gets_completions_that_it_reads() {
    let dir = Dir::new("completions");
    fs::create_dir_all(&dir.0).unwrap();
    for shell in ["bash", "zsh", "fish", "elvish"] {
        let script = longwire(&["completions", shell]);
        // A command, one of its options, and one below another.
        for word in ["gateway", "http-upstream", "pathloss"] {
            assert!(script.contains(word), "{shell} has no '{word}'");
        }
        let file = dir.0.join(shell);
        fs::write(&file, script).unwrap();
        match Command::new(shell).arg("-n").arg(&file).output() {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{shell}: {text}");
            }
            Err(error) => println!("{shell} is left out: {error}"),
        }
    }
    // bash runs them: what begins with 'gate' is 'gateway'.
    let script = format!(
        "source {}; COMP_WORDS=(longwire gate); COMP_CWORD=1; _longwire longwire gate longwire; \
         echo ${{COMPREPLY[*]}}",
        dir.0.join("bash").display()
    );
    match Command::new("bash").args(["-c", &script]).output() {
        Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stdout), "gateway\n"),
        Err(error) => println!("bash is left out: {error}"),
    }
}
