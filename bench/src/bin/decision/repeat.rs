//! Messages that repeat: their bytes against gzip, their time against the least that it could be.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use codec::Settings;
use decide::policy::Objective;
use link::LinkConfig;
use sim::Random;
use sim::repeated::{Messages, Pair, Took, bound_s, smallest};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Messages by class: `NAME=FOLDER`, in the order of their names.
    #[arg(value_name = "NAME=FOLDER", required = true)]
    classes: Vec<String>,
    /// Presets of links without loss.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "satcom")]
    networks: Vec<String>,
    /// What is wanted: the soonest, or the fewest bytes.
    #[arg(long, default_value = "time", value_parser = ["time", "bytes"])]
    objective: String,
    /// How often each message comes; after the first time, the numbers in its text are others.
    #[arg(long, default_value_t = 4)]
    rounds: usize,
}

/// Sums of a round.
#[derive(Default)]
struct Sums {
    messages: usize,
    raw: usize,
    gzip: usize,
    coded: u64,
    requests: u64,
    carried: u64,
    seconds: f64,
    bound_s: f64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let objective = match &arguments.objective[..] {
        "bytes" => Objective::Bytes,
        _ => Objective::Time,
    };
    let mut out = stdout().lock();
    writeln!(
        out,
        "| class | network | round | messages | bytes | gzip -9 | coded | request | on the carrier \
         | seconds | bound | ratio |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for class in &arguments.classes {
        let wrong = || anyhow!("'{class}': say NAME=FOLDER");
        let (name, folder) = class.split_once('=').ok_or_else(wrong)?;
        let answers = read(Path::new(folder))?;
        ensure!(!answers.is_empty(), "{folder}: no messages");
        for network in &arguments.networks {
            let link = LinkConfig::preset(network)?;
            ensure!(link.ab.loss == 0.0 && link.ba.loss == 0.0, "{network}: a link without loss");
            let mut pair = Pair::new(&link, "text/xml", objective);
            let mut random = Random::new(1);
            let mut before: Vec<Option<Messages>> = vec![None; answers.len()];
            for round in 0..arguments.rounds {
                let sums = one(&mut pair, &link, round, &answers, &mut before, &mut random);
                print(&mut out, name, network, round, &sums)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// All messages once.
fn one(
    pair: &mut Pair,
    link: &LinkConfig,
    round: usize,
    answers: &[(String, Vec<u8>)],
    before: &mut [Option<Messages>],
    random: &mut Random,
) -> Sums {
    let mut sums = Sums::default();
    for ((operation, answer), before) in answers.iter().zip(before) {
        let answer = if round == 0 { answer.clone() } else { changed(answer, random) };
        let request = query(operation, random);
        let messages = Messages { path: format!("/{operation}"), request, answer };
        let Took { seconds, answer_bytes, request_bytes, carried, .. } = pair.exchange(&messages);
        let known = before.as_ref();
        let q = smallest(&messages.request, known.map(|known| &known.request[..]));
        let b = smallest(&messages.answer, known.map(|known| &known.answer[..]));
        sums.messages += 1;
        sums.raw += messages.answer.len();
        sums.gzip += gzip(&messages.answer);
        sums.coded += answer_bytes;
        sums.requests += request_bytes;
        sums.carried += carried.iter().sum::<u64>();
        sums.seconds += seconds;
        sums.bound_s += bound_s(link, q, b);
        *before = Some(messages);
    }
    sums
}

fn print(
    out: &mut impl Write,
    name: &str,
    network: &str,
    round: usize,
    sums: &Sums,
) -> std::io::Result<()> {
    let n = sums.messages;
    let each = |sum: u64| sum / n as u64;
    writeln!(
        out,
        "| {name} | {network} | {} | {n} | {} | {} | {} | {} | {} | {:.3} | {:.3} | {:.3} |",
        round + 1,
        sums.raw / n,
        sums.gzip / n,
        each(sums.coded),
        each(sums.requests),
        each(sums.carried),
        sums.seconds / n as f64,
        sums.bound_s / n as f64,
        sums.seconds / sums.bound_s,
    )
}

/// The files of a folder, by name, with what they are called up to the first dot.
fn read(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.is_file());
    paths.sort();
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.split('.').next().unwrap_or_default().to_owned();
        let body = std::fs::read(path).with_context(|| path.display().to_string())?;
        Ok((name, body))
    };
    paths.iter().map(named).collect()
}

fn gzip(message: &[u8]) -> usize {
    let settings = Settings { level: Some(9), ..Settings::default() };
    settings.encode("deflate", message).map_or(message.len(), |coded| coded.len())
}

/// What a client asks with.
fn query(operation: &str, random: &mut Random) -> Vec<u8> {
    let id = random.bits();
    format!(
        "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\"><s:Header><MessageID \
         xmlns=\"http://www.w3.org/2005/08/addressing\">urn:uuid:{id:032x}</MessageID></s:Header>\
         <s:Body><{operation}/></s:Body></s:Envelope>"
    )
    .into_bytes()
}

/// The message some time later: each digit behind another, between tags or in a value, is another
/// with an even chance for its number; names and namespaces stay.
fn changed(message: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = message.to_vec();
    let mut at = 0;
    while at < out.len() {
        let run = out[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let in_name =
            at > 0 && matches!(out[at - 1], b'/' | b'_') || at > 3 && &out[at - 4..at] == b"org/";
        if run > 1 && !in_name && random.once_in(2) {
            for byte in &mut out[at + 1..at + run] {
                *byte = b'0' + random.below(10).to_le_bytes()[0];
            }
        }
        at += run.max(1);
    }
    out
}
