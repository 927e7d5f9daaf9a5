//! `longwire keygen`: a key pair for one side.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use proxy::keys::{Role, Shown};

use crate::side;

/// Make a key pair for one side of the pair, or show one.
///
/// Writes DIR/longwire.key, the private key, readable by its owner only, and DIR/longwire.pub, one
/// line for the other side's --peer file. Existing files are never overwritten. With --show, prints
/// the public key and the fingerprint of a key that is there.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire keygen edge-keys --name edge-1 --role edge
  longwire keygen gateway-keys --name gateway --role gateway
  longwire gateway --key gateway-keys/longwire.key --peer edge-keys/longwire.pub ...
  longwire edge --key edge-keys/longwire.key --peer gateway-keys/longwire.pub ...
  cat edge-*/longwire.pub > edges.pub     # a peer file may list several
  longwire keygen --show edges.pub        # or a private key: its own fingerprint")]
pub(crate) struct Args {
    /// Directory for the two files; made if it is not there.
    #[arg(value_name = "DIR", required_unless_present = "show")]
    dir: Option<PathBuf>,
    /// What the other side calls this one, in its logs and metrics.
    #[arg(long, value_name = "NAME", default_value = "longwire")]
    name: String,
    /// What the key may be used as: edge or gateway; without it, either. Who has a gateway's role
    /// is no edge to a gateway, and the other way round.
    #[arg(long, value_name = "ROLE", value_parser = Role::parse)]
    role: Option<Role>,
    /// Show the keys in a file instead: a private key's own, or those of a peer file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dir", "name", "role"])]
    show: Option<PathBuf>,
    /// Print a JSON object instead of lines; with --show, one for each key.
    #[arg(long)]
    json: bool,
}

/// Makes the pair and tells where it is, or shows one.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let text = match (&args.show, &args.dir) {
        (Some(path), _) => show(path, args.json),
        (None, Some(dir)) => make(dir, &args),
        (None, None) => Err(proxy::Error::Caller("no DIR: name where the keys are to be".into())),
    };
    match text {
        Ok(text) => crate::say(&text)?,
        Err(error) => return side::finish(Err(error)),
    }
    Ok(ExitCode::SUCCESS)
}

fn make(dir: &Path, args: &Args) -> Result<String, proxy::Error> {
    let made = proxy::keys::generate(dir, &args.name, args.role)?;
    let (private, public) = (made.private.display(), made.public.display());
    let fingerprint = made.key.fingerprint();
    if args.json {
        let facts = serde_json::json!({
            "name": args.name,
            "role": args.role.map(|role| role.to_string()),
            "private": private.to_string(),
            "public": public.to_string(),
            "key": made.key.to_string(),
            "fingerprint": fingerprint,
        });
        return Ok(format!("{facts}\n"));
    }
    Ok(format!("private key  {private}\npublic key   {public}\nfingerprint  {fingerprint}\n"))
}

fn show(path: &Path, json: bool) -> Result<String, proxy::Error> {
    let mut text = String::new();
    for Shown { name, key, role } in proxy::keys::show(path)? {
        let (fingerprint, role) = (key.fingerprint(), role.map(|role| role.to_string()));
        if json {
            let key = key.to_string();
            let facts = serde_json::json!({
                "name": name, "role": role, "key": key, "fingerprint": fingerprint,
            });
            let _ = writeln!(text, "{facts}");
            continue;
        }
        let role = role.map_or_else(String::new, |role| format!(" {role}"));
        let name = name.map_or_else(String::new, |name| format!("{name} "));
        let _ = writeln!(text, "public key   {name}{key}{role}\nfingerprint  {fingerprint}");
    }
    Ok(text)
}
