//! The brokers that are compared, as processes on one core.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use longwire_bench::machine::pin_this_thread;

/// How long a broker may take until it listens.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks whether it does.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Which broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Ours.
    Longwire,
    /// The other.
    Mosquitto,
}

/// Where programs and files are, and on which core brokers run.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) longwire: PathBuf,
    pub(crate) mosquitto: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) core: usize,
}

/// A broker that runs; ends when dropped.
pub(crate) struct Server {
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    child: Child,
}

impl Kind {
    /// Both, ours first.
    pub(crate) const ALL: [Self; 2] = [Self::Longwire, Self::Mosquitto];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Longwire => "longwire",
            Self::Mosquitto => "mosquitto",
        }
    }
}

impl Server {
    /// Starts one. With `durable` it keeps what it has to keep on the disk.
    pub(crate) fn start(setup: &Setup, kind: Kind, durable: bool) -> Result<Self> {
        let folder = setup.folder.join(kind.name());
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        // Programs start on the cores of the thread that starts them.
        thread::scope(|scope| {
            let start = || {
                pin_this_thread(setup.core);
                match kind {
                    Kind::Longwire => longwire(&setup.longwire, &folder, durable),
                    Kind::Mosquitto => mosquitto(&setup.mosquitto, &folder, durable),
                }
            };
            match scope.spawn(start).join() {
                Ok(server) => server,
                Err(_) => bail!("starting {} panicked", kind.name()),
            }
        })
    }

    /// Processor time of all its threads so far.
    pub(crate) fn processor_time(&self) -> Result<Duration> {
        let mut sum_ns = 0;
        for entry in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(entry?.path().join("schedstat"))?;
            let ns = text.split_whitespace().next().and_then(|field| field.parse::<u64>().ok());
            sum_ns += ns.context("unknown form of schedstat")?;
        }
        Ok(Duration::from_nanos(sum_ns))
    }

    /// Resident memory, in bytes.
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        self.status_bytes("VmRSS:")
    }

    /// The greatest so far.
    pub(crate) fn peak_bytes(&self) -> Result<u64> {
        self.status_bytes("VmHWM:")
    }

    fn status_bytes(&self, key: &str) -> Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .with_context(|| format!("{} is gone", self.kind.name()))?;
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        let kib: Option<u64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        Ok(kib.with_context(|| format!("no {key} of {}", self.kind.name()))? * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It serves nobody any more; one that has ended already is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn longwire(program: &Path, folder: &Path, durable: bool) -> Result<Server> {
    let mut command = Command::new(program);
    command.args(["broker", "--mqtt", "127.0.0.1:0", "--log", "error"]);
    if durable {
        command.arg("--store").arg(folder);
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {}", program.display()))?;
    let mut ready = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut ready)?;
    }
    let address = ready
        .trim()
        .strip_prefix("listening on ")
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    match address {
        Some(address) => Ok(Server { kind: Kind::Longwire, address, child }),
        None => {
            // It has said why on the standard error, which is ours.
            let _ = child.kill();
            bail!("longwire does not start ({})", child.wait()?)
        }
    }
}

fn mosquitto(program: &Path, folder: &Path, durable: bool) -> Result<Server> {
    // It cannot say which port it took: one that was free just before.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let persistence = if durable {
        format!("persistence true\npersistence_location {}/\n", folder.display())
    } else {
        "persistence false\n".to_owned()
    };
    let text = format!(
        "listener {} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n\
         max_queued_messages 0\nuser root\n{persistence}",
        address.port()
    );
    let path = folder.join("mosquitto.conf");
    fs::write(&path, text)?;
    let mut child = Command::new(program)
        .arg("-c")
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("start {}", program.display()))?;
    let until = Instant::now() + START_PATIENCE;
    while TcpStream::connect(address).is_err() {
        if let Some(status) = child.try_wait()? {
            bail!("mosquitto does not start ({status}); see mosquitto -c {}", path.display());
        }
        if Instant::now() > until {
            let _ = child.kill();
            bail!("mosquitto does not listen within {} s", START_PATIENCE.as_secs());
        }
        // sleep: it tells nobody when it listens.
        thread::sleep(LOOK_INTERVAL);
    }
    Ok(Server { kind: Kind::Mosquitto, address, child })
}
