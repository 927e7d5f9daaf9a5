//! Benchmarks of servers of CoAP over loopback: requests a second and processor time of each, in
//! turns, what many peers cost, and what a message takes to be read and written.

use std::hint::black_box;
use std::io::{self, Write, stderr, stdout};
use std::net::{SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use longwire_bench::machine::{describe, raise_descriptor_limit};
use longwire_bench::statistics::median;
use proto::coap::{Code, Content, Datagram, Kind, Token, option};
use serde_json::json;

/// Exit status when the command itself is wrong.
const BAD_USE: u8 = 2;
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// Answers that may be missing before a server is given up.
const MAX_LOST: u64 = 100;
/// Messages that are read and written for their times.
const MESSAGES: u32 = 2_000_000;

/// Measure servers of CoAP, each asked by clients that wait for one answer at a time.
///
/// The servers run already, as `interop/coap/speed.py` starts them: of one processor each, another
/// than this program has. Rounds go through the servers in turn.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// A server: its name, address, process and path. The first is compared with the others.
    #[arg(long = "server", value_name = "NAME,ADDRESS,PID,PATH", value_parser = server)]
    servers: Vec<Server>,
    /// Clients at once, each with an address of its own.
    #[arg(long, value_name = "N", default_value_t = 32,
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    at_once: u16,
    /// Rounds through all servers.
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u16).range(1..=100))]
    rounds: u16,
    /// Seconds that a server is asked for in a round.
    #[arg(long, value_name = "S", default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(1..=60))]
    seconds: u16,
    /// Peers that ask each server once in the end, for its memory.
    #[arg(long, value_name = "N", default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(0..=50_000))]
    peers: u32,
}

#[derive(Clone, Debug)]
struct Server {
    name: String,
    address: SocketAddr,
    pid: u32,
    path: String,
}

fn server(text: &str) -> Result<Server, String> {
    let wrong = || format!("'{text}' is no server; give one like a,127.0.0.1:5683,4711,/x");
    let [name, address, pid, path] =
        <[&str; 4]>::try_from(text.split(',').collect::<Vec<_>>()).map_err(|_| wrong())?;
    Ok(Server {
        name: name.to_owned(),
        address: address.parse().map_err(|_| wrong())?,
        pid: pid.parse().map_err(|_| wrong())?,
        path: path.trim_start_matches('/').to_owned(),
    })
}

/// One client.
struct Client {
    socket: UdpSocket,
    mid: u16,
}

impl Client {
    fn new(server: &Server) -> Result<Self> {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).context("no socket")?;
        socket.connect(server.address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { socket, mid: 0 })
    }

    fn ask(&mut self, request: &Content) -> Result<()> {
        self.mid = self.mid.wrapping_add(1);
        let token = Token::new(&self.mid.to_be_bytes())?;
        self.socket.send(&request.encode(Kind::Confirmable, self.mid, token)?)?;
        Ok(())
    }

    /// Whether the answer came.
    fn hear(&self) -> Result<bool> {
        let mut room = [0; 1500];
        loop {
            let len = match self.socket.recv(&mut room) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error).context("a server is not there"),
            };
            let answer = Datagram::decode(room.get(..len).unwrap_or_default())?;
            let is_it = answer.message.token.as_slice() == self.mid.to_be_bytes();
            if is_it && answer.message.code == Code::CONTENT {
                return Ok(true);
            }
            if is_it && answer.message.code != Code::EMPTY {
                bail!("a server answers {}", answer.message.code);
            }
        }
    }
}

fn request(server: &Server) -> Content {
    let segments = server.path.split('/').filter(|segment| !segment.is_empty());
    segments.fold(Content::new(Code::GET), |content, segment| {
        content.with(option::URI_PATH, segment.as_bytes())
    })
}

/// Processor time of a process so far, and its resident memory in bytes.
fn accounts(pid: u32) -> Result<(Duration, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .with_context(|| format!("no process {pid}"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let field = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
    // Clock ticks are hundredths of a second; fields are counted behind the name (proc(5)).
    let ticks = field(11).zip(field(12)).map(|(user, system)| user + system);
    let pages = field(21);
    let (ticks, pages) = ticks.zip(pages).context("unknown form of /proc/PID/stat")?;
    Ok((Duration::from_millis(ticks * 10), pages * 4096))
}

/// What a server did in a round.
struct Figures {
    per_s: f64,
    processor_us: f64,
}

fn round(server: &Server, at_once: u16, lasts: Duration) -> Result<Figures> {
    let request = request(server);
    let mut clients = (0..at_once).map(|_| Client::new(server)).collect::<Result<Vec<_>>>()?;
    let (before, _) = accounts(server.pid)?;
    let (began, mut answers, mut lost) = (Instant::now(), 0_u64, 0);
    for client in &mut clients {
        client.ask(&request)?;
    }
    while began.elapsed() < lasts {
        for client in &mut clients {
            match client.hear()? {
                true => answers += 1,
                false => lost += 1,
            }
            if lost > MAX_LOST {
                bail!("{}: over {MAX_LOST} answers did not come", server.name);
            }
            client.ask(&request)?;
        }
    }
    let elapsed_s = began.elapsed().as_secs_f64();
    let used = accounts(server.pid)?.0.saturating_sub(before);
    let each = used.as_secs_f64() * 1e6 / answers.max(1) as f64;
    Ok(Figures { per_s: answers as f64 / elapsed_s, processor_us: each })
}

/// Resident bytes before and after so many peers have asked.
fn memory(server: &Server, peers: u32) -> Result<(u64, u64)> {
    let request = request(server);
    let before = accounts(server.pid)?.1;
    for _ in 0..peers {
        let mut client = Client::new(server)?;
        client.ask(&request)?;
        client.hear()?;
    }
    Ok((before, accounts(server.pid)?.1))
}

/// Nanoseconds to write and to read a message with three options and 40 bytes.
fn codec_ns() -> Result<(f64, f64)> {
    let content = Content::new(Code::POST)
        .with(option::URI_PATH, b"messages")
        .with(option::URI_PATH, b"inbox")
        .with_uint(option::CONTENT_FORMAT, 60)
        .with_payload(vec![7; 40]);
    let token = Token::new(b"abcd")?;
    let bytes = content.encode(Kind::Confirmable, 1, token)?;
    let time = |work: &dyn Fn() -> Result<()>| -> Result<f64> {
        let began = Instant::now();
        for _ in 0..MESSAGES {
            work()?;
        }
        Ok(began.elapsed().as_secs_f64() * 1e9 / f64::from(MESSAGES))
    };
    let write = time(&|| {
        black_box(black_box(&content).encode(Kind::Confirmable, 1, token)?);
        Ok(())
    })?;
    let read = time(&|| {
        let datagram = Datagram::decode(black_box(&bytes))?;
        black_box(datagram.message.options.count());
        Ok(())
    })?;
    Ok((write, read))
}

fn spread(values: &[f64]) -> (f64, f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(0.0, f64::max);
    (median(values.iter().copied()), least, greatest)
}

fn measure(cli: &Cli) -> Result<serde_json::Value> {
    raise_descriptor_limit()?;
    let mut figures: Vec<Vec<Figures>> = cli.servers.iter().map(|_| Vec::new()).collect();
    for number in 0..cli.rounds {
        for (server, figures) in cli.servers.iter().zip(&mut figures) {
            let rounds = usize::from(cli.rounds - number) * cli.servers.len();
            let (left_s, name) = (rounds * usize::from(cli.seconds), &server.name);
            let (now, all) = (number + 1, cli.rounds);
            writeln!(stderr(), "round {now} of {all}, {name}: {left_s} s left at most")?;
            let lasts = Duration::from_secs(cli.seconds.into());
            figures.push(round(server, cli.at_once, lasts)?);
        }
    }
    let mut rows = Vec::new();
    for (server, figures) in cli.servers.iter().zip(&figures) {
        let rates: Vec<f64> = figures.iter().map(|one| one.per_s).collect();
        let times: Vec<f64> = figures.iter().map(|one| one.processor_us).collect();
        let (per_s, least, greatest) = spread(&rates);
        let (before, after) = memory(server, cli.peers)?;
        rows.push(json!({
            "server": server.name, "per_s": per_s, "per_s_range": [least, greatest],
            "processor_us": spread(&times).0, "resident_bytes": before,
            "resident_bytes_with_peers": after,
        }));
    }
    let (write_ns, read_ns) = codec_ns()?;
    Ok(json!({
        "machine": describe("coap"), "at_once": cli.at_once, "peers": cli.peers, "servers": rows,
        "write_ns": write_ns, "read_ns": read_ns,
    }))
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = measure(&cli).and_then(|result| {
        writeln!(stdout(), "{}", serde_json::to_string_pretty(&result)?)?;
        Ok(())
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The status tells it too.
            let _ = writeln!(stderr(), "coap: {error:#}");
            ExitCode::from(if cli.servers.is_empty() { BAD_USE } else { 1 })
        }
    }
}
