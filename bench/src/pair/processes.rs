//! Edge and gateway as processes of the binary that ships.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Setup;
use crate::machine::pin_this_thread;

/// A running pair; ends when dropped.
pub(super) struct Pair {
    edge: Side,
    gateway: Side,
}

struct Side {
    name: &'static str,
    child: Child,
    address: SocketAddr,
}

/// Key files of both sides, removed when dropped.
struct Keys {
    folder: PathBuf,
}

impl Pair {
    /// Starts both sides, on one core where that is given.
    pub(super) fn start(
        binary: &Path,
        setup: &Setup,
        service: SocketAddr,
        core: Option<usize>,
    ) -> Result<Self> {
        // Programs start on the cores of the thread that starts them.
        let start = || {
            if let Some(core) = core {
                pin_this_thread(core);
            }
            let keys = setup.keys.then(|| Keys::make(binary)).transpose()?;
            let arguments = |name: &str, other: &str| {
                let mut all = vec![name.to_string()];
                let options = ["--listen", "127.0.0.1:0", "--log", "error", "--encoding"];
                all.extend(options.map(String::from));
                all.push(setup.encoding.to_string());
                if let Some(keys) = &keys {
                    all.extend(["--key".to_string(), keys.file(name, "key")]);
                    all.extend(["--peer".to_string(), keys.file(other, "pub")]);
                }
                all
            };
            let mut gateway = arguments("gateway", "edge");
            gateway.extend(["--allow".to_string(), format!("http://{service}")]);
            let gateway = Side::start(binary, "gateway", &gateway)?;
            let mut edge = arguments("edge", "gateway");
            edge.extend(["--gateway".to_string(), gateway.address.to_string()]);
            Ok(Self { edge: Side::start(binary, "edge", &edge)?, gateway })
        };
        thread::scope(|scope| match scope.spawn(start).join() {
            Ok(pair) => pair,
            Err(_) => bail!("starting the pair panicked"),
        })
    }

    /// Where clients connect to.
    pub(super) fn address(&self) -> SocketAddr {
        self.edge.address
    }

    /// Resident memory now: edge, gateway.
    pub(super) fn resident_bytes(&self) -> Result<[u64; 2]> {
        Ok([self.edge.memory_bytes("VmRSS:")?, self.gateway.memory_bytes("VmRSS:")?])
    }

    /// The greatest resident memory so far: edge, gateway.
    pub(super) fn peak_bytes(&self) -> Result<[u64; 2]> {
        Ok([self.edge.memory_bytes("VmHWM:")?, self.gateway.memory_bytes("VmHWM:")?])
    }

    /// Processor time of both together so far.
    pub(super) fn processor_time(&self) -> Result<Duration> {
        Ok(self.edge.processor_time()? + self.gateway.processor_time()?)
    }
}

impl Side {
    fn start(binary: &Path, name: &'static str, arguments: &[String]) -> Result<Self> {
        let mut command = Command::new(binary);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child =
            command.spawn().with_context(|| format!("start {} {name}", binary.display()))?;
        let mut ready = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut ready)?;
        }
        let address = ready.trim().strip_prefix("listening on ").and_then(|at| at.parse().ok());
        match address {
            Some(address) => Ok(Self { name, child, address }),
            None => {
                // It has said why on the standard error, which is ours.
                let _ = child.kill();
                let status = child.wait()?;
                bail!("the {name} does not start ({status})")
            }
        }
    }

    fn proc(&self, file: &str) -> Result<String> {
        let path = format!("/proc/{}/{file}", self.child.id());
        fs::read_to_string(path).with_context(|| format!("the {} is gone", self.name))
    }

    /// A figure of proc_pid_status(5).
    fn memory_bytes(&self, key: &str) -> Result<u64> {
        let status = self.proc("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let kib: Option<u64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        Ok(kib.with_context(|| format!("{key} of the {}", self.name))? * 1024)
    }

    fn processor_time(&self) -> Result<Duration> {
        let stat = self.proc("stat")?;
        // Fields 14 and 15 of proc_pid_stat(5), the first two stand before the parenthesis.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks: u64 =
            rest.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
        let per_s = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)?.unwrap_or(100) as f64;
        Ok(Duration::from_secs_f64(ticks as f64 / per_s))
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // It serves nobody any more; one that has ended already is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Keys {
    fn make(binary: &Path) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("longwire-bench-{}", std::process::id()));
        let keys = Self { folder };
        for name in ["edge", "gateway"] {
            let output = Command::new(binary)
                .args(["keygen", "--name", name])
                .arg(keys.folder.join(name))
                .output()?;
            if !output.status.success() {
                bail!("keygen: {}", String::from_utf8_lossy(&output.stderr).trim());
            }
        }
        Ok(keys)
    }

    fn file(&self, name: &str, kind: &str) -> String {
        self.folder.join(name).join(format!("longwire.{kind}")).display().to_string()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // Both sides have read them; in the temporary folder they do no harm.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
