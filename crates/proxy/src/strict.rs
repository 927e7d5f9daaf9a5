//! Files that say who is let in, or what a process believes of itself: nobody else may have written
//! them. The owner is this user or root, others may write neither the file nor its directory, and
//! no link leads elsewhere (what sshd calls strict modes). What is checked is what was opened.

use std::ffi::CString;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::Error;

/// Others may write (the group, everybody).
const WRITE_GROUP: u32 = 0o020;
const WRITE_ALL: u32 = 0o002;
/// In a directory like /tmp others may add files, but not take ours away.
const STICKY: u32 = 0o1000;
/// Anything for others.
const OTHERS: u32 = 0o077;

/// Whether others may add files to a directory where they cannot touch ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sticky {
    /// As to /tmp, for a file that is looked at as it is.
    Fine,
    /// Not where files are looked for by name that may not be there.
    Refused,
}

/// A file that is open and was not yet checked.
pub(crate) struct Opened<'a> {
    file: File,
    metadata: Metadata,
    path: &'a Path,
    /// What it is to the reader of a message, like "the private key".
    what: &'static str,
}

/// Opens a file whose directory nobody else can change; a symbolic link is refused.
pub(crate) fn open<'a>(path: &'a Path, what: &'static str) -> Result<Opened<'a>, Error> {
    let unreadable = |error: io::Error| unreadable(path, &error);
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path.file_name().ok_or_else(|| unreadable(io::ErrorKind::IsADirectory.into()))?;
    let flags = libc::O_PATH | libc::O_DIRECTORY;
    let directory =
        OpenOptions::new().read(true).custom_flags(flags).open(parent).map_err(unreadable)?;
    let name = CString::new(name.as_bytes()).map_err(|error| unreadable(error.into()))?;
    // A pipe must not make us wait.
    let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the descriptor is open as long as `directory`, and the name ends with a zero.
    let fd = unsafe { libc::openat(directory.as_raw_fd(), name.as_ptr(), flags) };
    if fd < 0 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ELOOP) {
            let shown = path.display();
            return Err(Error::Caller(format!(
                "{what} {shown} is a symbolic link: name the file that it leads to"
            )));
        }
        return Err(unreadable(error));
    }
    // SAFETY: the call above gave it to us, and to nobody else.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Error::Caller(format!("{what} {} is no file", path.display())));
    }
    let inside = directory.metadata().map_err(unreadable)?;
    check(&inside, parent, "the directory", Sticky::Fine)?;
    Ok(Opened { file, metadata, path, what })
}

impl Opened<'_> {
    /// All of it, up to a limit.
    pub(crate) fn read(&mut self, most_bytes: u64) -> Result<Vec<u8>, Error> {
        let bytes = self.read_some(most_bytes + 1)?;
        if bytes.len() as u64 > most_bytes {
            let (len, shown) = (self.metadata.len(), self.path.display());
            return Err(Error::Caller(format!(
                "{shown} is {len} bytes, over the limit of {most_bytes}: is it {}?",
                self.what
            )));
        }
        Ok(bytes)
    }

    /// Its first bytes.
    pub(crate) fn read_some(&mut self, bytes: u64) -> Result<Vec<u8>, Error> {
        let mut found = Vec::new();
        let read = (&mut self.file).take(bytes).read_to_end(&mut found);
        read.map(|_| found).map_err(|error| unreadable(self.path, &error))
    }

    /// Refuses a file that others may change.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check(&self.metadata, self.path, self.what, Sticky::Refused)
    }

    /// Refuses a file that others may read.
    pub(crate) fn check_private(&self) -> Result<(), Error> {
        let mode = self.metadata.mode();
        if mode & OTHERS != 0 {
            let (path, mode, what) = (self.path.display(), mode & 0o777, self.what);
            return Err(Error::Caller(format!(
                "{what} {path} may be read by others (mode {mode:04o}): chmod 600 {path}"
            )));
        }
        self.check()
    }

    /// Takes the file from all but its owner.
    pub(crate) fn keep_private(&self) -> Result<(), Error> {
        keep_private(&self.file, &self.metadata, self.path)
    }
}

/// Checks a directory of ours that is open, in which files are looked for by name.
pub(crate) fn check_directory(directory: &File, path: &Path) -> Result<(), Error> {
    let metadata = directory.metadata().map_err(|error| unreadable(path, &error))?;
    check(&metadata, path, "the directory", Sticky::Refused)
}

/// Checks a directory that is to hold a file of ours.
pub(crate) fn check_place(path: &Path) -> Result<(), Error> {
    let metadata = path.metadata().map_err(|error| unreadable(path, &error))?;
    check(&metadata, path, "the directory", Sticky::Fine)
}

/// Checks a file of ours by its name, if it is there, and takes it from all but its owner. No
/// descriptor is opened to the bytes: to close one would drop SQLite's locks.
pub(crate) fn keep_private_by_name(path: &Path) -> Result<(), Error> {
    let flags = libc::O_PATH | libc::O_NOFOLLOW;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(path, &error)),
    };
    let metadata = file.metadata().map_err(|error| unreadable(path, &error))?;
    if !metadata.is_file() {
        let shown = path.display();
        let kind = if metadata.is_symlink() { "is a symbolic link" } else { "is no file" };
        return Err(Error::Caller(format!("{shown} {kind}: remove it, or give another --store")));
    }
    keep_private(&file, &metadata, path)
}

fn keep_private(file: &File, metadata: &Metadata, path: &Path) -> Result<(), Error> {
    check(metadata, path, "the file", Sticky::Refused)?;
    let (mode, shown) = (metadata.mode() & 0o777, path.display());
    if mode & OTHERS == 0 {
        return Ok(());
    }
    tracing::warn!("{shown} may be read by others (mode {mode:04o}): now it may not");
    // A descriptor without rights to the bytes has none to change the mode, but its name has.
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::set_permissions(name, Permissions::from_mode(mode & 0o700))
        .map_err(Error::system(format!("take {shown} from others")))
}

fn check_owner(metadata: &Metadata, path: &Path, what: &str) -> Result<(), Error> {
    let (owner, us) = (metadata.uid(), this_user());
    if owner == us || owner == 0 {
        return Ok(());
    }
    let shown = path.display();
    Err(Error::Caller(format!(
        "{what} {shown} belongs to user {owner}, who may change it: give it to this user ({us}) or \
         to root (chown)"
    )))
}

fn check(metadata: &Metadata, path: &Path, what: &str, sticky: Sticky) -> Result<(), Error> {
    check_owner(metadata, path, what)?;
    let mode = metadata.mode();
    let group = mode & WRITE_GROUP != 0 && !is_own_group(metadata.gid());
    let kept = sticky == Sticky::Fine && mode & STICKY != 0;
    if kept || !(group || mode & WRITE_ALL != 0) {
        return Ok(());
    }
    let (shown, mode) = (path.display(), mode & 0o7777);
    Err(Error::Caller(format!(
        "{what} {shown} may be written by others (mode {mode:04o}): chmod go-w {shown}"
    )))
}

/// The error of a path that cannot be read.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Error {
    let shown = path.display();
    let from = match std::env::current_dir() {
        Ok(here) if path.is_relative() => format!(" (looked for from {})", here.display()),
        _ => String::new(),
    };
    Error::Caller(format!("cannot read {shown}: {error}{from}"))
}

fn this_user() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether a group is this user's alone, as where each user has one of the same number: with the
/// umask 002 of such systems all files may be written by it.
fn is_own_group(group: u32) -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    group == this_user() && is_alone(group, &read("/etc/passwd"), &read("/etc/group"))
}

/// Whether the user of the group's number is its only member, as far as the files say.
fn is_alone(group: u32, passwd: &str, groups: &str) -> bool {
    let field = |line: &str, at: usize| line.split(':').nth(at).unwrap_or("").to_owned();
    let number = group.to_string();
    let of_group = |line: &&str| field(line, 3) == number;
    let mut users = passwd.lines().filter(of_group);
    if users.any(|line| field(line, 2) != number) {
        return false;
    }
    let own = passwd.lines().find(|line| field(line, 2) == number);
    let own = own.map(|line| field(line, 0)).unwrap_or_default();
    let mut lines = groups.lines().filter(|line| field(line, 2) == number);
    lines.all(|line| field(line, 3).split(',').all(|member| member.is_empty() || member == own))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{chown, symlink};
    use std::path::PathBuf;

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("longwire-strict-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), "x").unwrap();
            Self(path)
        }

        fn mode(&self, name: &str, mode: u32) {
            fs::set_permissions(self.0.join(name), Permissions::from_mode(mode)).unwrap();
        }

        /// What is said of the file.
        fn verdict(&self) -> String {
            let path = self.0.join("file");
            let checked = open(&path, "the peer file").and_then(|file| file.check());
            checked.map_or_else(|error| error.to_string(), |()| "fine".to_owned())
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_others_may_write_is_refused() {
        let scratch = Scratch::new("modes");
        for (directory, file, expected) in [
            (0o755, 0o644, "fine"),
            (0o700, 0o600, "fine"),
            (0o1777, 0o644, "fine"),
            (0o755, 0o666, "the peer file"),
            (0o755, 0o646, "the peer file"),
            (0o777, 0o644, "the directory"),
            (0o757, 0o644, "the directory"),
        ] {
            scratch.mode("", directory);
            scratch.mode("file", file);
            let verdict = scratch.verdict();
            assert!(verdict.starts_with(expected), "{directory:o} {file:o}: {verdict}");
            assert!(expected == "fine" || verdict.contains("chmod go-w"), "{verdict}");
        }
        scratch.mode("", 0o1777);
        let directory = File::open(&scratch.0).unwrap();
        let refused = check_directory(&directory, &scratch.0).unwrap_err().to_string();
        assert!(refused.contains("mode 1777"), "{refused}");
    }

    #[test]
    fn links_and_what_is_no_file_are_refused() {
        let scratch = Scratch::new("links");
        fs::rename(scratch.0.join("file"), scratch.0.join("other")).unwrap();
        symlink("other", scratch.0.join("file")).unwrap();
        assert!(scratch.verdict().contains("is a symbolic link"), "{}", scratch.verdict());
        let refused = keep_private_by_name(&scratch.0.join("file")).unwrap_err().to_string();
        assert!(refused.contains("is a symbolic link: remove it"), "{refused}");
        fs::remove_file(scratch.0.join("file")).unwrap();
        assert!(scratch.verdict().contains("cannot read"), "{}", scratch.verdict());
        fs::create_dir(scratch.0.join("file")).unwrap();
        assert!(scratch.verdict().contains("is no file"), "{}", scratch.verdict());
        assert!(keep_private_by_name(&scratch.0.join("none")).is_ok());
    }

    #[test]
    fn what_another_user_owns_is_refused() {
        let scratch = Scratch::new("owner");
        // Only root can give files away.
        if this_user() != 0 || chown(scratch.0.join("file"), Some(65_534), None).is_err() {
            eprintln!("left out: this needs root");
            return;
        }
        assert!(scratch.verdict().contains("belongs to user 65534"), "{}", scratch.verdict());
        chown(scratch.0.join("file"), Some(0), None).unwrap();
        chown(&scratch.0, Some(65_534), None).unwrap();
        scratch.mode("", 0o1777);
        assert!(scratch.verdict().starts_with("the directory"), "{}", scratch.verdict());
    }

    #[test]
    fn a_group_of_one_is_distinguished_from_others() {
        let passwd = "root:x:0:0::/:/bin/sh\nann:x:1000:1000::/:/bin/sh\nbob:x:1001:100::/:/x\n";
        assert!(is_alone(1000, passwd, "ann:x:1000:\nusers:x:100:bob\n"));
        assert!(is_alone(1000, passwd, "ann:x:1000:ann\n"));
        assert!(!is_alone(1000, passwd, "ann:x:1000:bob\n"));
        assert!(!is_alone(1000, &passwd.replace(":100:", ":1000:"), "ann:x:1000:\n"));
    }
}
