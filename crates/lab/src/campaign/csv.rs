//! Results as comma-separated values (RFC 4180), for other programs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use record::campaign::{Campaign, Cell, Measured, Run};

use crate::error::{Doing, Result};

const RUN_COLUMNS: &str = "cell,network,server,service,way,settings,repetition,attempt,seed,\
    started_unix_s,elapsed_s,parallel,mean_s,exchanges,errors,censored,up_packets,up_bytes,\
    down_packets,down_bytes,lateness_p50_us,lateness_p99_us,lateness_max_us,processor_wait_s,\
    congestion_client,congestion_server,flagged,failure";
const EXCHANGE_COLUMNS: &str = "cell,repetition,warm_up,number,name,start_s,elapsed_s,status,\
    body_bytes,connections,up_packets,up_bytes,up_retransmitted,down_packets,down_bytes,\
    down_retransmitted,flights,censored,error";

/// Writes `results.csv`, one line a run, and `exchanges.csv`, one line an exchange, into a
/// directory.
///
/// # Errors
/// [`Error::System`](crate::Error::System) when they cannot be written.
pub fn export(campaign: &Campaign, directory: &Path) -> Result<()> {
    let write = |name: &str, lines: fn(&Campaign, &mut dyn Write) -> io::Result<()>| {
        let path = directory.join(name);
        let doing = || format!("write {}", path.display());
        let mut file = BufWriter::new(File::create(&path).doing(doing)?);
        lines(campaign, &mut file).and_then(|()| file.flush()).doing(doing)
    };
    write("results.csv", runs)?;
    write("exchanges.csv", exchanges)
}

fn runs(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{RUN_COLUMNS}")?;
    for (cell, run) in campaign.cells.iter().flat_map(Cell::runs_with) {
        let settings = cell.settings.iter().map(|(name, value)| format!("{name}={value}"));
        let settings = settings.collect::<Vec<_>>().join(" ");
        let mean_s = run.mean_s().map(|seconds| format!("{seconds:.6}"));
        let late = &run.lateness;
        let [client, server] = &run.congestion_control;
        let fields: [&dyn std::fmt::Display; 28] = [
            &quoted(&cell.name),
            &quoted(&cell.network),
            &quoted(&cell.server),
            &quoted(&cell.service),
            &cell.way.name(),
            &quoted(&settings),
            &run.repetition,
            &run.attempt,
            &run.seed,
            &format!("{:.3}", run.started_unix_s),
            &format!("{:.6}", run.elapsed_s),
            &run.parallel,
            &mean_s.unwrap_or_default(),
            &run.measured.len(),
            &run.errors(),
            &run.censored(),
            &run.up.packets_in,
            &run.up.bytes_in,
            &run.down.packets_in,
            &run.down.bytes_in,
            &late.p50_us,
            &late.p99_us,
            &late.max_us,
            &format!("{:.6}", run.processor_wait_s),
            &quoted(client),
            &quoted(server),
            &quoted(run.flagged.as_deref().unwrap_or_default()),
            &quoted(run.failure.as_deref().unwrap_or_default()),
        ];
        line(out, &fields)?;
    }
    Ok(())
}

fn exchanges(campaign: &Campaign, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{EXCHANGE_COLUMNS}")?;
    for (cell, run) in campaign.cells.iter().flat_map(Cell::runs_with) {
        for (is_warm_up, pass) in [(1, &run.warm_up), (0, &run.measured)] {
            for (number, measured) in pass.iter().enumerate() {
                exchange(out, (cell, run), (is_warm_up, number), measured)?;
            }
        }
    }
    Ok(())
}

fn exchange(
    out: &mut dyn Write,
    (cell, run): (&Cell, &Run),
    (is_warm_up, number): (u8, usize),
    measured: &Measured,
) -> io::Result<()> {
    let Measured { exchange: of, up, down, flights } = measured;
    let status = of.status.map(|status| status.to_string()).unwrap_or_default();
    let fields: [&dyn std::fmt::Display; 19] = [
        &quoted(&cell.name),
        &run.repetition,
        &is_warm_up,
        &number,
        &quoted(&of.name),
        &format!("{:.6}", of.start_s),
        &format!("{:.6}", of.elapsed_s),
        &status,
        &of.body_bytes,
        &of.connections,
        &up.packets,
        &up.bytes,
        &up.retransmitted,
        &down.packets,
        &down.bytes,
        &down.retransmitted,
        flights,
        &u8::from(of.censored),
        &quoted(of.error.as_deref().unwrap_or_default()),
    ];
    line(out, &fields)
}

fn line(out: &mut dyn Write, fields: &[&dyn std::fmt::Display]) -> io::Result<()> {
    for (at, field) in fields.iter().enumerate() {
        write!(out, "{}{field}", if at == 0 { "" } else { "," })?;
    }
    writeln!(out)
}

/// A text as a field: quoted where a reader could mistake it.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn only_what_could_be_mistaken_is_quoted() {
        assert_eq!(quoted("a b=1"), "a b=1");
        assert_eq!(quoted("a,\"b\"\nc"), "\"a,\"\"b\"\"\nc\"");
    }
}
