//! The command line of longwire: parses, resolves, hands over. One file per command.

mod broker;
mod campaign;
mod coap;
mod coding;
mod demo;
mod doctor;
mod edge;
mod explain;
mod federation;
mod fetch;
mod find;
mod gateway;
mod history;
mod keygen;
mod lab;
mod log;
mod manual;
mod message;
mod produce;
mod serve;
mod service;
mod side;
mod terminal;
mod topics;
mod ui;
mod wbxml;
mod wsp;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};

pub(crate) use terminal::{BAD_USE, command_line, say, tell};

/// The allocator. In the C library's heap, a process that holds hundreds of exchanges took 25 us of
/// processor more for each message of the others; its settings stand in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Middleware that makes ordinary web services work well over bad links, and the laboratory that
/// proves it.
#[derive(Parser)]
#[command(name = "longwire", version = env!("LONGWIRE_VERSION"), propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// One variant per command; each is a file of its own with `run(args) -> anyhow::Result<ExitCode>`.
#[derive(Subcommand)]
enum Command {
    Broker(Box<broker::Args>),
    Coap(Box<coap::Args>),
    Codecs(coding::list::Args),
    Compare(coding::compare::Args),
    Completions(manual::CompletionsArgs),
    Decode(Box<coding::stream::DecodeArgs>),
    Demo(demo::Args),
    Doctor(doctor::Args),
    Edge(Box<edge::Args>),
    Encode(Box<coding::stream::EncodeArgs>),
    Explain(explain::Args),
    Federation(federation::Args),
    Fetch(fetch::Args),
    Find(Box<find::Args>),
    Gateway(Box<gateway::Args>),
    History(history::Args),
    Keygen(keygen::Args),
    Lab(lab::Args),
    Man(manual::ManArgs),
    Message(Box<message::Args>),
    Produce(Box<produce::Args>),
    Pub(Box<topics::publish::Args>),
    Serve(serve::Args),
    Sub(Box<topics::subscribe::Args>),
    Train(coding::train::Args),
    Ui(ui::Args),
    Wbxml(wbxml::Args),
    Wsp(wsp::Args),
}

/// What is there to be asked for.
fn commands() -> String {
    let names = Cli::command();
    let names: Vec<_> = names.get_subcommands().map(clap::Command::get_name).collect();
    format!("no command is given: one of {} (see --help)", names.join(", "))
}

/// Options of `longwire gateway` by the names that they had, which are refused, and have.
const RENAMED: [(&str, &str); 3] = [
    ("--plain", "--http-listen"),
    ("--plain-upstream", "--http-upstream"),
    ("--plain-anywhere", "--http-anywhere"),
];

/// A refusal of clap's in one line: what is wrong, its tip, where to read on.
fn one_line(error: &clap::Error) -> String {
    if let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg)
        && error.kind() == ErrorKind::UnknownArgument
        && let Some((old, new)) = RENAMED.iter().find(|(old, _)| old == given)
    {
        return format!("'{old}' is no option: of a gateway its name is '{new}' (see --help)");
    }
    let text = error.to_string();
    let wrong = text.split("Usage:").next().unwrap_or(&text);
    let wrong = wrong.split("For more information").next().unwrap_or(wrong);
    let words: Vec<_> = wrong.trim_start_matches("error: ").split_whitespace().collect();
    format!("{} (see --help)", words.join(" "))
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version that were asked for are no errors.
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => {
            let bare = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
            tell(&if error.kind() == bare { commands() } else { one_line(&error) });
            return ExitCode::from(BAD_USE);
        }
    };
    let result: anyhow::Result<ExitCode> = match cli.command {
        Command::Broker(args) => broker::run(*args),
        Command::Coap(args) => coap::run(*args),
        Command::Codecs(args) => coding::list::run(args),
        Command::Compare(args) => coding::compare::run(args),
        Command::Completions(args) => manual::completions(&args, Cli::command()),
        Command::Decode(args) => coding::stream::decode(*args),
        Command::Demo(args) => demo::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Edge(args) => edge::run(*args),
        Command::Encode(args) => coding::stream::encode(*args),
        Command::Explain(args) => explain::run(&args),
        Command::Federation(args) => federation::run(args),
        Command::Fetch(args) => fetch::run(args),
        Command::Find(args) => find::run(&args),
        Command::Gateway(args) => gateway::run(*args),
        Command::History(args) => history::run(&args),
        Command::Keygen(args) => keygen::run(args),
        Command::Lab(args) => lab::run(args),
        Command::Man(args) => manual::pages(&args, Cli::command()),
        Command::Message(args) => message::run(*args),
        Command::Produce(args) => produce::run(&args),
        Command::Pub(args) => topics::publish::run(&args),
        Command::Serve(args) => serve::run(args),
        Command::Sub(args) => topics::subscribe::run(&args),
        Command::Train(args) => coding::train::run(&args),
        Command::Ui(args) => ui::run(&args),
        Command::Wbxml(args) => wbxml::run(args),
        Command::Wsp(args) => wsp::run(args),
    };
    log::finish();
    match result {
        Ok(code) => code,
        Err(error) => {
            tell(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
