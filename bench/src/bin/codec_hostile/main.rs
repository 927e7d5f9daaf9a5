//! What hostile input costs each codec: time, memory, and the error that it ends with.

#[path = "../../../../crates/codec/tests/common/hostile.rs"]
mod hostile;
mod meter;
mod mismatch;
mod subjects;

use std::io::{Write, stderr, stdout};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use codec::Error;
use longwire_bench::machine::{describe, render};
use longwire_bench::markdown::{Document, Table};
use serde_json::json;

use meter::{Figures, Timed};
use subjects::{Direction, Subject};

/// The section of a document that `--markdown` keeps.
const SECTION: &str = "codec_hostile";
/// What a byte in and out may cost at length 8n by what it costs at n: linear is 1, n^1.5 2.8,
/// quadratic 8. What fits into a cache at n and not at 8n costs a decoder of gigabytes a second
/// twice as much.
const MAX_GROWTH: f64 = 2.5;
/// The same from 4n to 8n, quadratic being 2: windows that have yet to fill make short inputs
/// cheap, and at their size that ends. Both must be passed to be a fault.
const MAX_LAST_GROWTH: f64 = 1.25;
/// An input that is shorter together with what comes out counts as this long: contexts cost what
/// they cost.
const MIN_BYTES: usize = 16 << 10;
/// Below this a time says nothing about growth: what was refused early.
const MIN_GROWTH_S: f64 = 0.001;
/// Inputs are as long as takes about this, at their longest.
const LONGEST_S: f64 = 0.02;
/// The least and the greatest of the shortest inputs, in bytes.
const SHORTEST_BYTES: (usize, usize) = (2 << 10, 128 << 10);
const MIB: f64 = 1_048_576.0;

/// Give each codec what is made to hurt it, and show what that costs.
///
/// Messages and streams of many kinds (deep nesting, many names, huge lengths in few bytes, bombs,
/// entities, things never closed, streams cut and overwritten behind any part of their head) at
/// lengths n, 2n, 4n and 8n, whole and in blocks of 1000 bytes. Time is processor time, memory is
/// what is allocated at most beyond the input, and the growth of the resident set. The exit status
/// is 1 if a byte's time grows to more than 2.5 times from n to 8n and goes on growing up to 32n,
/// more memory is taken than the limits say, an error has no offset where it should, or anything
/// panics.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  codec_hostile --quick
  codec_hostile --only 'exi strict' --input 'many' --each
  codec_hostile --markdown docs/benchmarks.md"
)]
struct Cli {
    /// Short inputs, on which growth is shown and not judged: windows do not fill.
    #[arg(long)]
    quick: bool,
    /// Only codecs whose name begins so.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Only inputs whose name begins so.
    #[arg(long, value_name = "NAME")]
    input: Option<String>,
    /// Show each input's figures too, on the standard error.
    #[arg(long)]
    each: bool,
    /// One JSON object per codec and direction instead of tables.
    #[arg(long)]
    json: bool,
    /// Put the tables into this document too, between `<!-- codec_hostile: begin -->` and its end.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

fn main() -> ExitCode {
    match measure(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // The status tells it too.
            let _ = writeln!(stderr(), "codec_hostile: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What all inputs of one codec in one direction came to.
#[derive(Default)]
struct Sum {
    inputs: usize,
    taken: usize,
    limits: usize,
    offsets: usize,
    options: usize,
    /// Errors that should say where and do not, panics.
    bare: Vec<String>,
    usual_s: f64,
    worst: (f64, String),
    growth: (f64, String),
    figures: Figures,
    allowed_bytes: usize,
    faults: Vec<String>,
}

impl Sum {
    fn outcome(&mut self, name: &str, result: &Result<(), Error>) {
        self.inputs += 1;
        match result {
            Ok(()) => self.taken += 1,
            Err(Error::Limit { .. }) => self.limits += 1,
            Err(Error::Malformed { .. }) => self.offsets += 1,
            Err(Error::Option { .. }) => self.options += 1,
            Err(error) => self.bare.push(format!("{name}: {error}")),
        }
    }

    fn add(&mut self, line: &Line<'_>, figures: &Figures) {
        let Line { name, cost, growth, is_growing, allowed_bytes, .. } = *line;
        self.figures.allocated = self.figures.allocated.max(figures.allocated);
        self.figures.resident = self.figures.resident.max(figures.resident);
        let taken = figures.allocated.max(figures.resident);
        if taken > allowed_bytes {
            self.faults.push(format!("{name}: {:.1} MiB", taken as f64 / MIB));
        }
        if is_growing {
            self.faults.push(format!("{name}: {:.0} times the time", growth * 8.0));
        }
        if growth > self.growth.0 {
            self.growth = (growth, name.to_owned());
        }
        if cost > self.worst.0 {
            self.worst = (cost, name.to_owned());
        }
        if name == "a usual message" || name == "XML" {
            self.usual_s = cost;
        }
    }
}

/// One subject in one direction, and what came of it so far.
struct Case<'a> {
    cli: &'a Cli,
    subject: &'a Subject,
    direction: Direction,
    shortest: usize,
    sum: Sum,
}

impl Case<'_> {
    /// All inputs, whole and in blocks.
    fn all(&mut self) {
        let subject = self.subject;
        let deep = subject.of_any_depth();
        let ways: &[bool] = if subject.streams() { &[false, true] } else { &[false] };
        for &pieces in ways {
            for (name, input) in subject.inputs(self.direction) {
                if self.cli.input.as_ref().is_some_and(|only| !name.starts_with(only.as_str())) {
                    continue;
                }
                let name = if pieces { format!("{name}, in blocks") } else { name };
                self.input(subject, pieces, &name, &*input);
            }
            for (name, input) in deep.inputs(self.direction) {
                if name.starts_with("deep") && self.cli.input.is_none() {
                    let name = format!("{name}, of any depth");
                    self.input(&deep, pieces, &name, &*input);
                }
            }
        }
    }

    /// One input at four lengths; there may be none of a length.
    fn input(
        &mut self,
        subject: &Subject,
        pieces: bool,
        name: &str,
        input: &dyn Fn(usize) -> Option<Vec<u8>>,
    ) {
        let lengths = [1, 2, 4, 8].map(|times| input(self.shortest * times));
        let [Some(short), Some(_), Some(half), Some(long)] = &lengths else { return };
        let run = |bytes: &[u8]| {
            let run = || subject.run(self.direction, pieces, bytes);
            panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
                (0, Err(Error::Corrupt { codec: "", what: "PANIC".to_owned() }))
            })
        };
        let cost = |bytes: &[u8]| {
            let timed = meter::timed(|| run(bytes));
            let cost = timed.seconds / (bytes.len() + timed.made).max(1) as f64;
            (timed, cost)
        };
        let (mut costs, mut refused) = (Vec::new(), Vec::new());
        let mut last = None;
        for bytes in lengths.iter().flatten() {
            let (timed, cost) = cost(bytes);
            costs.push((timed.seconds, cost));
            self.sum.outcome(name, &timed.result);
            refused.push(timed.result.is_err());
            last = Some(timed);
        }
        // What came out before a refusal is not counted: what is taken is not compared with that.
        let alike = refused.iter().all(|one| *one == refused[3]);
        let is_growing = |costs: &[_]| alike && is_growing(costs);
        for _ in 0..3 {
            if is_growing(&costs) {
                // Somebody else's work may have been in between.
                costs[0].1 = costs[0].1.max(cost(short).1);
                costs[2].1 = costs[2].1.max(cost(half).1);
                let (again, least) = cost(long);
                costs[3] = (costs[3].0.min(again.seconds), costs[3].1.min(least));
            }
        }
        let figures = meter::memory(|| run(long));
        let Some(timed) = last else { return };
        let line = Line {
            name,
            bytes: long.len(),
            cost: costs[3].0 * 1e6 / (long.len() + timed.made).max(MIN_BYTES) as f64,
            growth: if alike { growth(&costs) } else { 0.0 },
            is_growing: !self.cli.quick
                && is_growing(&costs)
                && goes_on(costs[3].1, refused[3], |times| {
                    let (timed, cost) = cost(&input(self.shortest * times)?);
                    Some((cost, timed.result.is_err()))
                }),
            allowed_bytes: subject.allowed_bytes(long.len()),
        };
        self.sum.add(&line, &figures);
        if self.cli.each {
            let _ = writeln!(stderr(), "{}", line.render(&timed, &figures));
        }
    }
}

/// Figures of an input at its longest.
struct Line<'a> {
    name: &'a str,
    bytes: usize,
    /// Seconds for a million bytes in and out.
    cost: f64,
    growth: f64,
    is_growing: bool,
    allowed_bytes: usize,
}

impl Line<'_> {
    fn render(&self, timed: &Timed, figures: &Figures) -> String {
        let Self { name, bytes, cost, growth, .. } = self;
        let outcome = timed.result.as_ref().err().map_or("taken".to_owned(), Error::to_string);
        let mib = |bytes: usize| bytes as f64 / MIB;
        format!(
            "    {name}: {bytes} in, {} out, {cost:.4} s/MB, {:.1}, {:.1} MiB, {:.1} MiB; \
             {outcome:.90}",
            timed.made,
            growth * 8.0,
            mib(figures.allocated),
            mib(figures.resident),
        )
    }
}

/// How much more a byte of the longest input costs than one of the shortest.
fn growth(costs: &[(f64, f64)]) -> f64 {
    match costs {
        [(_, first), .., (seconds, last)] if *seconds >= MIN_GROWTH_S => last / first,
        _ => 0.0,
    }
}

/// Whether what a byte costs grows on behind 8n, where another method may have begun or a window
/// was still to fill. `further` gives it at a multiple of n, and whether the input was refused.
fn goes_on(cost: f64, refused: bool, further: impl Fn(usize) -> Option<(f64, bool)>) -> bool {
    let mut before = cost;
    [16, 32].into_iter().all(|times| {
        let Some((cost, refused_too)) = further(times) else { return false };
        let grown = refused_too == refused && cost > before * MAX_LAST_GROWTH;
        before = cost;
        grown
    })
}

fn is_growing(costs: &[(f64, f64)]) -> bool {
    match costs {
        [.., (_, half), (_, last)] => growth(costs) > MAX_GROWTH && last / half > MAX_LAST_GROWTH,
        _ => false,
    }
}

/// Everything. Answers whether nothing is to be complained of.
fn measure(cli: &Cli) -> Result<bool> {
    let document = cli.markdown.clone().map(|path| Document::open(path, SECTION)).transpose()?;
    let mut subjects = subjects::all()?;
    if let Some(only) = &cli.only {
        subjects.retain(|subject| subject.name.starts_with(only.as_str()));
        if subjects.is_empty() {
            bail!("no codec's name begins with '{only}'");
        }
    }
    let heads = [
        "codec",
        "",
        "runs",
        "taken",
        "by limit",
        "with offset",
        "option",
        "usual s/MB",
        "worst s/MB",
        "growth",
        "allocated MiB",
        "resident MiB",
        "bound MiB",
    ];
    let mut table = Table::new(&heads);
    let mut faults = Vec::new();
    for subject in &subjects {
        let (longest_s, (least, most)) = match cli.quick {
            true => (LONGEST_S / 4.0, (SHORTEST_BYTES.0 / 2, SHORTEST_BYTES.1 / 8)),
            false => (LONGEST_S, SHORTEST_BYTES),
        };
        let shortest = subject.shortest(longest_s, (least, most));
        for &direction in subject.directions() {
            let sum = Sum { allowed_bytes: subject.allowed_bytes(0), ..Sum::default() };
            let mut case = Case { cli, subject, direction, shortest, sum };
            let name = format!("{} {}", subject.name, direction.word());
            let _ = writeln!(stderr(), "{name}: {shortest} bytes and more");
            case.all();
            let sum = case.sum;
            let found = sum.faults.iter().chain(&sum.bare);
            faults.extend(found.map(|fault| format!("{name}: {fault}")));
            table.row(row(subject, direction, &sum));
            if cli.json {
                writeln!(stdout(), "{}", object(subject, direction, &sum))?;
            }
        }
    }
    for fault in &faults {
        writeln!(stderr(), "{fault}")?;
    }
    let mut exchanged = Table::new(&["codec", "read with", "streams", "refused", "first error"]);
    for line in mismatch::all()? {
        exchanged.row([
            line.codec,
            line.what.to_owned(),
            line.streams.to_string(),
            line.refused.to_string(),
            format!("{:.66}", line.error),
        ]);
        if line.is_fault {
            faults.push(line.what.to_owned());
        }
    }
    let text =
        format!("{}\n{}\n{}", render(&describe(SECTION)), table.render(), exchanged.render());
    if !cli.json {
        write!(stdout(), "{text}")?;
    }
    document.map_or(Ok(()), |document| document.update(&text))?;
    Ok(faults.is_empty())
}

fn row(subject: &Subject, direction: Direction, sum: &Sum) -> [String; 13] {
    let mib = |bytes: usize| format!("{:.1}", bytes as f64 / MIB);
    let named =
        |(value, name): &(f64, String), factor: f64| format!("{name}: {:.4}", value * factor);
    [
        subject.name.clone(),
        direction.word().to_owned(),
        sum.inputs.to_string(),
        sum.taken.to_string(),
        sum.limits.to_string(),
        sum.offsets.to_string(),
        sum.options.to_string(),
        format!("{:.4}", sum.usual_s),
        named(&sum.worst, 1.0),
        named(&sum.growth, 8.0),
        mib(sum.figures.allocated),
        mib(sum.figures.resident),
        mib(sum.allowed_bytes),
    ]
}

fn object(subject: &Subject, direction: Direction, sum: &Sum) -> serde_json::Value {
    json!({
        "codec": subject.name, "direction": direction.word(), "runs": sum.inputs,
        "taken": sum.taken, "limit": sum.limits, "malformed": sum.offsets, "option": sum.options,
        "without_offset": sum.bare.len(), "usual_s_per_mb": sum.usual_s,
        "worst_s_per_mb": sum.worst.0, "worst_input": sum.worst.1,
        "growth": sum.growth.0 * 8.0, "growth_input": sum.growth.1,
        "allocated_bytes": sum.figures.allocated, "resident_bytes": sum.figures.resident,
        "bound_bytes": sum.allowed_bytes,
    })
}
