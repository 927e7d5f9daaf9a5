//! One run, message by message.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow, ensure};
use clap::Args;
use link::LinkConfig;
use sim::decision::{Chooser, Run, Setting};

use crate::judge::{priors_of, split};
use crate::measure::{ARMS, NAM_ARMS};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The table of `decision measure`.
    table: PathBuf,
    /// The class of messages.
    #[arg(long, value_name = "NAME")]
    class: String,
    /// Presets of links, in order.
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    networks: Vec<String>,
    /// Messages on each.
    #[arg(long, default_value_t = 25)]
    each: usize,
    /// How many times slower than where the table was measured codecs run.
    #[arg(long, default_value_t = 1.0)]
    slower: f64,
    /// The run's seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (start, judged) = split(crate::read(&arguments.table)?)?;
    let mut classes = judged.classes().into_iter();
    let class = classes.find(|(name, _)| *name == arguments.class);
    let (_, class) = class.ok_or_else(|| anyhow!("no class '{}'", arguments.class))?;
    ensure!(arguments.slower > 0.0, "--slower {}: more than 0", arguments.slower);
    let priors = priors_of(&start, arguments.slower);
    let setting = Setting {
        slower: arguments.slower,
        class: &class,
        profile: &judged,
        nam_arms: &NAM_ARMS,
        priors: &priors,
    };
    let links = arguments.networks.iter().map(|name| LinkConfig::preset(name));
    let links = links.collect::<Result<Vec<_>, _>>()?;
    let mut run = Run::new(setting, Chooser::Ours, &links[0], arguments.seed);
    let mut out = stdout().lock();
    writeln!(
        out,
        "message\tnetwork\tbytes\tencoding\texpected_s\tcodec_s\tnetwork_s\tkbit_s\trtt_ms\tloss"
    )?;
    for place in 0..arguments.each * links.len() {
        let at = place / arguments.each;
        run.change(&links[at]);
        let one = run.send(place);
        let path = run.path();
        writeln!(
            out,
            "{place}\t{}\t{}\t{}\t{:.5}\t{:.5}\t{:.5}\t{:.1}\t{:.2}\t{:.4}",
            arguments.networks[at],
            class.messages[one.message].bytes,
            ARMS[one.arm],
            one.expected_s,
            one.codec_s,
            one.network_s,
            path.rate_bps / 1e3,
            path.rtt_s * 1e3,
            path.loss
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
