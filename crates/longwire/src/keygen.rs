//! `longwire keygen`: a key pair for one side.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::side;

/// Make a key pair for one side of the pair.
///
/// Writes DIR/longwire.key, the private key, readable by its owner only, and DIR/longwire.pub, one
/// line for the other side's --peer file. Existing files are never overwritten.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire keygen edge-keys --name edge-1
  longwire keygen gateway-keys --name gateway
  longwire gateway --key gateway-keys/longwire.key --peer edge-keys/longwire.pub ...
  longwire edge --key edge-keys/longwire.key --peer gateway-keys/longwire.pub ...
  cat edge-*/longwire.pub > edges.pub     # a peer file may list several")]
pub(crate) struct Args {
    /// Directory for the two files; made if it is not there.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// What the other side calls this one, in its logs and metrics.
    #[arg(long, value_name = "NAME", default_value = "longwire")]
    name: String,
    /// Print a JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

/// Makes the pair and tells where it is.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let made = match proxy::keys::generate(&args.dir, &args.name) {
        Ok(made) => made,
        Err(error) => return side::finish(Err(error)),
    };
    let (private, public) = (made.private.display(), made.public.display());
    let fingerprint = made.key.fingerprint();
    let text = if args.json {
        let facts = serde_json::json!({
            "name": args.name,
            "private": private.to_string(),
            "public": public.to_string(),
            "key": made.key.to_string(),
            "fingerprint": fingerprint,
        });
        format!("{facts}\n")
    } else {
        format!("private key  {private}\npublic key   {public}\nfingerprint  {fingerprint}\n")
    };
    stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
