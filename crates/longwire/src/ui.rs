//! `longwire ui`: the web interface.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use desk::{Desk, Settings};
use serde_json::json;
use tracing_subscriber::EnvFilter;

use crate::{say, tell};

/// Serve the web interface of the laboratory on this machine, until Ctrl-C.
///
/// Prints the address to open in a browser. The token in it is what lets a browser or program in:
/// the interface changes this machine, so keep it to yourself. Labs and campaigns that were started
/// go on when the interface ends. docs/ui.md shows the pages, and the API under them.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  longwire ui
  longwire ui --listen 127.0.0.1:9000
  ssh -L 7780:127.0.0.1:7780 HOST longwire ui      from another machine, then open the address")]
pub(crate) struct Args {
    /// Where to listen: a loopback address; port 0 for any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7780")]
    listen: SocketAddr,
    /// The folder of campaigns, a directory of results each.
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// The folder of plans.
    #[arg(long, value_name = "DIR", default_value = "scenarios")]
    scenarios: PathBuf,
    /// Print {url} when it can be opened.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    // Only fails where the process has a subscriber already, which then logs.
    let _ =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
    let settings = Settings {
        listen: args.listen,
        program: std::env::current_exe().context("cannot find this program")?,
        version: env!("LONGWIRE_VERSION").to_string(),
        results: args.results.clone(),
        scenarios: args.scenarios.clone(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let desk = match Desk::bind(settings).await {
            Ok(desk) => desk,
            Err(error @ desk::Error::NotLoopback(_)) => {
                tell(&error.to_string());
                return Ok(ExitCode::from(crate::BAD_USE));
            }
            Err(error) => return Err(error.into()),
        };
        let url = desk.url();
        say(&match args.json {
            true => format!("{}\n", json!({"url": url})),
            false => format!("longwire ui: open {url}\n"),
        })?;
        desk.serve().await?;
        Ok(ExitCode::SUCCESS)
    })
}
