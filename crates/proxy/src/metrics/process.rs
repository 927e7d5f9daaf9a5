//! What the system knows of the process, by the names that Prometheus' own clients use.

use super::write_sample;
use std::fmt::Write as _;

/// What does not change while the process runs.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Version, as `--version` prints it.
    pub version: &'static str,
    /// Commit, where it was built from a repository; `+`: with changes.
    pub commit: Option<&'static str>,
}

impl Default for Build {
    fn default() -> Self {
        Self { version: env!("CARGO_PKG_VERSION"), commit: None }
    }
}

pub(super) fn render(build: Build, text: &mut String) {
    let _ = writeln!(text, "# HELP longwire_build_info What this is built from.");
    let _ = writeln!(text, "# TYPE longwire_build_info gauge");
    let commit = build.commit.unwrap_or("unknown");
    write_sample(text, "longwire_build_info", &[("version", build.version), ("commit", commit)], 1);
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let status = read("/proc/self/stat");
    // Behind the name, which may hold blanks (proc_pid_stat(5)): state is field 3.
    let fields: Vec<&str> = status
        .as_deref()
        .and_then(|line| line.rsplit_once(')'))
        .map(|(_, rest)| rest.split_ascii_whitespace().collect())
        .unwrap_or_default();
    let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
    let (ticks, page) = (system(libc::_SC_CLK_TCK), system(libc::_SC_PAGESIZE));
    let boot = read("/proc/stat").and_then(|stat| {
        stat.lines().find_map(|line| line.strip_prefix("btime ")?.parse::<f64>().ok())
    });
    let start = boot.zip(field(22)).map(|(boot, start)| boot + start / ticks);
    let cpu = field(14).zip(field(15)).map(|(user, system)| (user + system) / ticks);
    let open = std::fs::read_dir("/proc/self/fd").ok().map(|list| list.count() as f64);
    let most = read("/proc/self/limits").and_then(|limits| {
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        line.split_ascii_whitespace().next()?.parse::<f64>().ok()
    });
    for (name, kind, help, value) in [
        ("cpu_seconds_total", "counter", "Processor time, of users and the system.", cpu),
        ("open_fds", "gauge", "Open file descriptors.", open),
        ("max_fds", "gauge", "Most file descriptors.", most),
        ("virtual_memory_bytes", "gauge", "Virtual memory.", field(23)),
        ("resident_memory_bytes", "gauge", "Resident memory.", field(24).map(|rss| rss * page)),
        ("start_time_seconds", "gauge", "When it started, in seconds since 1970.", start),
    ] {
        // A system that does not tell gives no sample.
        if let Some(value) = value {
            let name = format!("process_{name}");
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            write_sample(text, &name, &[], value);
        }
    }
}

fn system(name: libc::c_int) -> f64 {
    // SAFETY: the call takes a number only.
    let value = unsafe { libc::sysconf(name) };
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_of_this_process() {
        let mut text = String::new();
        render(Build { version: "1.2.3", commit: None }, &mut text);
        assert!(text.contains("longwire_build_info{version=\"1.2.3\",commit=\"unknown\"} 1\n"));
        let value = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.expect(&text).parse().unwrap()
        };
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!((3.0..1e6).contains(&value("process_open_fds")));
        assert!(value("process_max_fds") >= value("process_open_fds"));
        assert!(value("process_start_time_seconds") > 1e9);
    }
}
