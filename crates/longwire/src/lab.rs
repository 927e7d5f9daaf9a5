//! `longwire lab`: hosts joined by emulated links.

mod calls;
mod net;
mod net_report;
mod pathloss;
mod ping;
mod realtime;
mod scenario;
mod sets;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context;
use lab::namespace::Reach;
use lab::session::{self, Emulator, Session, Up};
use lab::{Device, Error};
use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;

use crate::campaign;

/// What a shell answers for a command that it does not find, or may not run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;
/// Bad use.
const BAD_USE: u8 = 2;

/// Emulate links: two hosts, a and b, joined by a link with the rate, delay, loss and queue of a
/// real one.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Up(UpArgs),
    Exec(ExecArgs),
    Set(SetArgs),
    List(ListArgs),
    Ping(ping::PingArgs),
    Down(DownArgs),
    Presets(PresetsArgs),
    Pathloss(pathloss::PathlossArgs),
    Scenario(scenario::ScenarioArgs),
    Net(net::NetArgs),
    Calls(calls::CallsArgs),
    Realtime(realtime::RealtimeArgs),
    Save(sets::SaveArgs),
    Sets(sets::SetsArgs),
    Forget(sets::ForgetArgs),
    Run(campaign::RunArgs),
    Report(campaign::ReportArgs),
    Export(campaign::ExportArgs),
    Compare(campaign::CompareArgs),
    Enter(EnterArgs),
}

/// Bring hosts a and b up, joined by a link, until Ctrl-C or `lab down`.
///
/// Prints one line when the link can be used; with --detach it comes back then and leaves the lab
/// up. As root the hosts are the network namespaces
/// lw-NAME-a and lw-NAME-b; otherwise they live in a user namespace of this process.
#[derive(clap::Args)]
#[command(after_help = up_help())]
struct UpArgs {
    /// A name for the lab: letters, digits, '-' and '_'.
    name: String,
    /// The link, by the name of a preset or of a saved link (lab sets).
    #[arg(long, value_name = "NAME")]
    link: String,
    /// Change a setting of the link, for both directions or with the prefix ab. or ba. for one.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Decides every chance on the link: the same seed loses the same packets.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// What emulates the link: ferry, or the kernel's netem where it has it (for comparison).
    #[arg(long, value_name = "EMULATOR", default_value = "ferry", value_parser = emulator)]
    emulator: Emulator,
    /// What joins the hosts to the ferry: tap, veth, or auto for tap where it is permitted.
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = device)]
    device: Device,
    /// Use a user namespace even as root.
    #[arg(long)]
    rootless: bool,
    /// Come back when the link can be used, and leave the lab up until `lab down`.
    #[arg(long)]
    detach: bool,
    /// What --detach starts: leaves the terminal, and falls silent when the link can be used.
    #[arg(long, hide = true, conflicts_with = "detach")]
    detached: bool,
    /// Print the line as JSON, as in `lab list --json`.
    #[arg(long)]
    json: bool,
}

/// Run a command on a host of a lab.
///
/// A lab that is just coming up is waited for. There the names a and b resolve, for IPv4 and IPv6.
/// The command's exit status is passed on; 126 means that it could not be run, 127 that there is
/// none of that name.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire lab exec field a -- ping -c 3 b
  longwire lab exec field b -- longwire serve tracks --listen 0.0.0.0:8080
  longwire lab exec field a --await b:8080 -- \
      longwire fetch tracks --url http://b:8080 --api soap")]
struct ExecArgs {
    /// The lab.
    name: String,
    /// The host: a or b.
    host: String,
    /// First wait until a program listens for TCP connections there, such as b:8080. May repeat.
    #[arg(long = "await", value_name = "HOST:PORT", value_parser = listener)]
    listeners: Vec<(String, u16)>,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Become a program on a host: what experiments start their programs with.
#[derive(clap::Args)]
#[command(hide = true)]
struct EnterArgs {
    /// The host's network namespace, as a path.
    network: PathBuf,
    /// Addresses of host a: IPv4, or IPv4,IPv6.
    #[arg(required_unless_present = "names")]
    a: Option<Reach>,
    /// Addresses of host b.
    #[arg(required_unless_present = "names")]
    b: Option<Reach>,
    /// A file of names in place of both, in the form of /etc/hosts.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["a", "b"])]
    names: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Change a link while it is in use; what is queued stays queued.
///
/// All settings are taken or none. Prints what is then in force.
#[derive(clap::Args)]
#[command(after_help = set_help())]
struct SetArgs {
    /// The lab.
    name: String,
    /// Settings, for both directions or with the prefix ab. or ba. for one.
    #[arg(required = true, value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Print an object of all settings.
    #[arg(long)]
    json: bool,
}

/// Show the labs that are up, their links, and what these have carried.
#[derive(clap::Args)]
struct ListArgs {
    /// Print an array of {name, link, pid, hosts, ab, ba, ...}.
    #[arg(long)]
    json: bool,
}

/// End a lab and everything that runs in it.
#[derive(clap::Args)]
struct DownArgs {
    /// The lab.
    name: String,
}

/// Show the links that have names, and where their figures come from.
#[derive(clap::Args)]
struct PresetsArgs {
    /// Print an array of {name, source, settings}.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    // Only fails where the process has a subscriber already, which then logs.
    let _ =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
    let result = match args.action {
        Action::Up(args) => up(args),
        Action::Exec(args) => exec(&args),
        Action::Set(args) => set(&args),
        Action::List(args) => list(&args),
        Action::Ping(args) => ping::run(&args),
        Action::Down(args) => down(&args),
        Action::Presets(args) => presets(&args),
        Action::Pathloss(args) => pathloss::run(&args),
        Action::Scenario(args) => scenario::run(&args),
        Action::Net(args) => net::run(&args),
        Action::Calls(args) => calls::run(&args),
        Action::Realtime(args) => realtime::run(&args),
        Action::Save(args) => sets::save(&args),
        Action::Sets(args) => sets::list(&args),
        Action::Forget(args) => sets::forget(&args),
        Action::Run(args) => campaign::run(&args),
        Action::Report(args) => campaign::report(&args),
        Action::Export(args) => campaign::export(&args),
        Action::Compare(args) => campaign::compare(&args),
        Action::Enter(args) => enter(&args),
    };
    match result.as_ref().err().and_then(|error| error.downcast_ref::<Error>()) {
        Some(Error::Caller(message)) => {
            eprintln!("longwire: {message}");
            Ok(ExitCode::from(BAD_USE))
        }
        _ => result,
    }
}

fn up(args: UpArgs) -> anyhow::Result<ExitCode> {
    if args.detach {
        return detach(&args.name);
    }
    if args.detached {
        session::leave_terminal()?;
    }
    let UpArgs { name, link, set, seed, emulator, device, rootless, json, detached, .. } = args;
    let bad_use = |error: link::Error| Error::Caller(error.to_string());
    let mut config = lab::sets::load(&link)?;
    // Absolute, so that the lab can be saved from anywhere.
    let set: Vec<String> = set.iter().map(|one| session::with_absolute_path(one)).collect();
    config.apply(&set, session::read_trace).map_err(bad_use)?;
    let session =
        Session::up(Up { name: name.clone(), link, config, seed, emulator, device, rootless })?;
    let status = session.status()?;
    if status["real_time"] == false {
        eprintln!(
            "longwire: no real-time priority, so delays are true only while the machine is idle; \
             see longwire doctor"
        );
    }
    let line = if json { status.to_string() } else { welcome(&status) };
    // Whoever started it may have closed stdout; that is no reason not to serve.
    let _ = say(&line);
    if detached {
        session::fall_silent()?;
    }
    eprintln!("{}", farewell(&name, session.serve()? as u64));
    Ok(ExitCode::SUCCESS)
}

/// Starts this command once more, for a lab that goes on alone, and passes on what it says until
/// its link can be used or it refuses.
fn detach(name: &str) -> anyhow::Result<ExitCode> {
    const DETACH: &str = "--detach";
    let again = |argument: OsString| match argument == DETACH {
        true => OsString::from("--detached"),
        false => argument,
    };
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1).map(again)).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // Both end when the lab falls silent, or is no more.
    let (mut line, mut remarks) = (String::new(), String::new());
    if let Some(mut out) = child.stdout.take() {
        out.read_to_string(&mut line)?;
    }
    if let Some(mut remark) = child.stderr.take() {
        remark.read_to_string(&mut remarks)?;
    }
    eprint!("{remarks}");
    if line.is_empty() {
        let status = child.wait()?.code().and_then(|code| u8::try_from(code).ok());
        anyhow::ensure!(status.is_some(), "lab {name} was killed while it came up");
        return Ok(status.map_or(ExitCode::FAILURE, ExitCode::from));
    }
    say(line.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn welcome(status: &Value) -> String {
    let [name, link] = ["name", "link"].map(|key| text(&status[key]));
    let [a, b] = [0, 1].map(|host| text(&status["hosts"][host]["address"]));
    format!(
        "lab {name} is up: a {a}, b {b}, link {link}; \
         try: longwire lab exec {name} a -- ping -c 3 b"
    )
}

fn farewell(name: &str, ended: u64) -> String {
    match ended {
        0 => format!("lab {name} is down"),
        _ => format!("lab {name} is down; processes ended in it: {ended}"),
    }
}

fn exec(args: &ExecArgs) -> anyhow::Result<ExitCode> {
    let Some((program, arguments)) = args.command.split_first() else {
        anyhow::bail!("no command is given: put it after --");
    };
    for (host, port) in &args.listeners {
        session::await_listener(&args.name, host, *port)?;
    }
    become_program(session::enter(&args.name, &args.host, program)?.args(arguments))
}

fn enter(args: &EnterArgs) -> anyhow::Result<ExitCode> {
    let Some((program, arguments)) = args.command.split_first() else {
        anyhow::bail!("no command is given: put it after --");
    };
    match (&args.names, args.a, args.b) {
        (Some(names), ..) => lab::namespace::enter_net(&args.network, names)?,
        (None, Some(a), Some(b)) => lab::namespace::enter(&args.network, a, b)?,
        (None, ..) => anyhow::bail!("no addresses are given: put those of a and b first"),
    }
    become_program(Command::new(program).args(arguments))
}

/// Does not come back unless the program cannot be run.
fn become_program(command: &mut Command) -> anyhow::Result<ExitCode> {
    let error = command.exec();
    let program = command.get_program();
    eprintln!("longwire: cannot run {}: {error}", program.to_string_lossy());
    let is_missing = error.kind() == ErrorKind::NotFound;
    Ok(ExitCode::from(if is_missing { NOT_FOUND } else { NOT_RUNNABLE }))
}

fn set(args: &SetArgs) -> anyhow::Result<ExitCode> {
    let settings = session::set(&args.name, &args.settings)?;
    if args.json {
        say(&settings.to_string())?;
    } else {
        say(&settings_lines(&settings))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let labs = session::list()?;
    for name in &labs.killed {
        eprintln!(
            "lab {name} was killed; the next lab up, or lab down {name}, removes its remains"
        );
    }
    if args.json {
        say(&serde_json::to_string_pretty(&labs.up)?)?;
    } else {
        labs.up.iter().try_for_each(|lab| say(&summary(lab)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn down(args: &DownArgs) -> anyhow::Result<ExitCode> {
    say(&farewell(&args.name, session::down(&args.name)?))?;
    Ok(ExitCode::SUCCESS)
}

fn presets(args: &PresetsArgs) -> anyhow::Result<ExitCode> {
    if args.json {
        let all: Vec<Value> = link::presets()
            .iter()
            .map(|preset| {
                let settings = preset.config.settings().into_iter();
                let settings: serde_json::Map<String, Value> =
                    settings.map(|(key, value)| (key, value.into())).collect();
                json!({"name": preset.name, "source": preset.source, "settings": settings})
            })
            .collect();
        say(&serde_json::to_string_pretty(&all)?)?;
    } else {
        say(preset_lines().trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A lab in a few lines.
fn summary(lab: &Value) -> String {
    let mut lines = String::new();
    let real_time = match lab["real_time"].as_bool() {
        Some(true) => "real time",
        Some(false) => "no real-time priority",
        None => "emulated by netem",
    };
    let [name, link, device] = ["name", "link", "device"].map(|key| text(&lab[key]));
    let changes = lab["changed"].as_array().into_iter().flatten().map(text);
    let changes = changes.collect::<Vec<_>>().join(", ");
    let changed = if changes.is_empty() { changes } else { format!(" changed ({changes})") };
    let pid = &lab["pid"];
    let _ = write!(lines, "{name}: link {link}{changed}, pid {pid}, {device}, {real_time}");
    for host in lab["hosts"].as_array().into_iter().flatten() {
        let [name, address, netns] = ["name", "address", "netns"].map(|key| text(&host[key]));
        let v6 = host["address_v6"].as_str().map_or(String::new(), |v6| format!("  {v6}"));
        let _ = write!(lines, "\n  {name}   {address}{v6}  {netns}");
    }
    for direction in ["ab", "ba"] {
        let one = &lab[direction];
        let [rate, delay, loss] = ["rate", "delay", "loss"].map(|key| text(&one[key]));
        let (traffic, lateness) = (&one["traffic"], &one["lateness"]);
        let _ = write!(lines, "\n  {direction}  {rate}, {delay}, loss {loss}");
        if traffic.is_null() {
            continue;
        }
        let dropped: u64 =
            traffic["dropped"].as_object().into_iter().flatten().filter_map(|d| d.1.as_u64()).sum();
        let _ = write!(
            lines,
            ": {} packets in, {} out, {dropped} dropped",
            traffic["packets_in"], traffic["packets_out"]
        );
        if lateness["count"] != 0 {
            let _ = write!(lines, "; late by {} µs at p99", lateness["p99_us"]);
        }
    }
    lines
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("?")
}

fn settings_lines(settings: &Value) -> String {
    let all = settings.as_object().into_iter().flatten();
    all.map(|(key, value)| format!("{key} = {}", text(value))).collect::<Vec<_>>().join("\n")
}

fn preset_lines() -> String {
    link::presets().iter().fold(String::new(), |mut lines, preset| {
        let figures = figures(&preset.config);
        let _ = writeln!(lines, "  {:<18} {figures}\n  {:<18} {}", preset.name, "", preset.source);
        lines
    })
}

/// A link in a few words: rate, delay and loss of each direction.
fn figures(config: &link::LinkConfig) -> String {
    let one = |channel: &link::ChannelConfig| {
        let shown = ["rate", "delay", "loss"];
        let settings = channel.settings().into_iter();
        let shown = settings.filter(|(key, _)| shown.contains(key)).map(|(_, value)| value);
        shown.collect::<Vec<_>>().join(", ")
    };
    let (ab, ba) = (one(&config.ab), one(&config.ba));
    if ab == ba { ab } else { format!("{ab}; back {ba}") }
}

fn key_lines() -> String {
    link::keys().iter().fold(String::new(), |mut lines, key| {
        let _ = writeln!(lines, "  {:<18} {}: {}", key.name, key.about, key.expected);
        lines
    })
}

fn up_help() -> String {
    format!(
        "Presets (rate, one-way delay, loss of each direction):\n{}\nSettings:\n{}\n\
         Examples:\n  \
         longwire lab up field --link satcom\n  \
         longwire lab up field --link wifi3 --set 'loss=2 %' --set 'ba.rate=5 Mbit/s' --seed 7",
        preset_lines(),
        key_lines()
    )
}

fn set_help() -> String {
    format!(
        "Settings:\n{}\nExamples:\n  \
         longwire lab set field 'loss=10 %'\n  \
         longwire lab set field 'ab.rate=9.6 kbit/s' 'ba.rate=64 kbit/s'",
        key_lines()
    )
}

fn device(name: &str) -> Result<Device, String> {
    Device::parse(name).ok_or_else(|| "give auto, tap or veth".to_string())
}

/// `HOST:PORT`.
fn listener(text: &str) -> Result<(String, u16), String> {
    let parsed = text.rsplit_once(':').and_then(|(host, port)| {
        let port = port.parse().ok().filter(|port| *port > 0)?;
        (!host.is_empty()).then(|| (host.to_string(), port))
    });
    parsed.ok_or_else(|| "give a host and a port, like b:8080".to_string())
}

fn emulator(name: &str) -> Result<Emulator, String> {
    Emulator::parse(name).ok_or_else(|| "give ferry or netem".to_string())
}

fn say(line: &str) -> std::io::Result<()> {
    crate::say(&format!("{line}\n"))
}
