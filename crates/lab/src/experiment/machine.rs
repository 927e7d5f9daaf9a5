//! What the demonstration runs on.

use std::fs;

use nix::sys::utsname::uname;

/// Operating system and its release.
pub(crate) fn kernel() -> String {
    uname().map_or("unknown".to_string(), |names| {
        let part = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        format!("{} {} {}", part(names.sysname()), part(names.release()), part(names.machine()))
    })
}

/// Processor as the kernel names it.
pub(crate) fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    name.unwrap_or("unknown").to_string()
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Memory that programs can have without others being pushed out, in bytes (proc_meminfo(5)).
pub(crate) fn memory_available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(1024 * kib)
}
