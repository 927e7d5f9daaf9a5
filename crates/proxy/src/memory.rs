//! Keeps the C library's allocator from holding on to memory for every thread that ever allocated.

/// Arenas of the allocator: the default is eight per core, each of which keeps its own peak.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 2;
/// Blocks from this size on go back to the system when they are freed, in bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_BYTES: libc::c_int = 256 * 1024;

/// Limits the allocator's arenas; to be called first thing in a process.
pub fn limit_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt only changes settings of the allocator; it takes plain numbers.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES);
    }
}
