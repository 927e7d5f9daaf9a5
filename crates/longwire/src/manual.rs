//! `longwire man` and `longwire completions`: what a package has beside the program, made from the
//! definitions of the options, so that neither can differ from what the program takes.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Command, ValueEnum};
use clap_mangen::Man;

/// The line of a command's help behind which are its examples.
const EXAMPLES: &str = "Examples:";
/// What the pages are part of.
const MANUAL: &str = "longwire manual";

/// Write the manual pages, one for each command, into a directory.
///
/// They are called longwire.1, longwire-edge.1 and so on. 'man -l FILE' shows one.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire man pages
  man -l pages/longwire-edge.1")]
pub(crate) struct ManArgs {
    /// The directory; made if it is not there. Pages of the same name are replaced.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Print the completions of a shell, which then knows commands and options.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire completions bash > /etc/bash_completion.d/longwire
  longwire completions zsh > \"${fpath[1]}/_longwire\"
  longwire completions fish > ~/.config/fish/completions/longwire.fish")]
pub(crate) struct CompletionsArgs {
    /// For which shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// The shells whose completions there are.
#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
}

/// Prints the completions of `command`.
pub(crate) fn completions(
    args: &CompletionsArgs,
    mut command: Command,
) -> anyhow::Result<ExitCode> {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
        Shell::Elvish => clap_complete::Shell::Elvish,
    };
    let (name, mut script) = (command.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut command, name, &mut script);
    crate::terminal::put(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of `command` and of all below it.
pub(crate) fn pages(args: &ManArgs, command: Command) -> anyhow::Result<ExitCode> {
    let dir = &args.dir;
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let mut command = without_help(command);
    command.build();
    let count = write(&command, dir)?;
    crate::say(&format!("{count} pages are in {}\n", dir.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Without the commands that only print help, of which each group has one.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn write(command: &Command, dir: &Path) -> anyhow::Result<usize> {
    let mut count = 1;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        count += write(below, dir)?;
    }
    let source = format!("longwire {}", command.get_version().unwrap_or_default());
    let man = Man::new(command.clone()).manual(MANUAL).source(source);
    let path = dir.join(man.get_filename());
    let page = page(&man, command)?;
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(count)
}

/// One page. What is behind the options in a command's help is lines that stand as they are.
fn page(man: &Man, command: &Command) -> std::io::Result<String> {
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let mut page = String::from_utf8_lossy(&page).into_owned();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (notes, examples) = after.split_once(EXAMPLES).unwrap_or((&after, ""));
    section(&mut page, "NOTES", notes);
    section(&mut page, "EXAMPLES", examples);
    Ok(page)
}

/// Adds lines without filling them, if there are any.
fn section(page: &mut String, name: &str, lines: &str) {
    let lines = lines.trim_matches('\n');
    if lines.trim().is_empty() {
        return;
    }
    let _ = writeln!(page, ".SH {name}\n.nf");
    for line in lines.lines() {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        // A line that begins so would be a request.
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        let _ = writeln!(page, "{guard}{line}");
    }
    page.push_str(".fi\n");
}
