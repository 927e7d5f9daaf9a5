//! What an edge's names are made with, in a file of its own: whoever is given the database, to look
//! at a history, is not given what tells whose passwords fit the names in it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use coding::Secret;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::{Error, strict};

/// The file's name in the store's directory.
pub(super) const FILE_NAME: &str = "longwire.secret";
const LEN: usize = 32;

/// Reads the secret, or draws one. One that is cut short is set aside: what went by its names is
/// begun anew.
pub(super) fn load(directory: &Path) -> Result<Secret, Error> {
    let path = directory.join(FILE_NAME);
    let shown = path.display();
    // Also a link that leads nowhere is refused, not taken for a secret that is yet to be drawn.
    if path.symlink_metadata().is_ok() {
        let mut file = strict::open(&path, "the secret")?;
        file.keep_private()?;
        let found = file.read_some(LEN as u64 + 1)?;
        if let Ok(secret) = <[u8; LEN]>::try_from(&found[..]) {
            return Ok(Secret::new(secret));
        }
        let aside = directory.join(format!("{FILE_NAME}.aside-1"));
        fs::rename(&path, &aside)
            .map_err(Error::system(format!("set the unusable {shown} aside")))?;
        let aside = aside.display();
        tracing::warn!(%aside, "{shown} is unusable: set aside, beginning anew");
    }
    let mut drawn = [0; LEN];
    SystemRandom::new()
        .fill(&mut drawn)
        .map_err(|_| Error::system("draw a secret")(io::Error::other("no randomness")))?;
    write(directory, &drawn).map_err(Error::system(format!("write {shown}")))?;
    Ok(Secret::new(drawn))
}

/// All of it is there under its name, or nothing.
fn write(directory: &Path, secret: &[u8]) -> io::Result<()> {
    let path = directory.join(format!("{FILE_NAME}.new"));
    // What a process that was killed left may be anybody's to read.
    if let Err(error) = fs::remove_file(&path)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(secret)?;
    file.sync_all()?;
    fs::rename(&path, directory.join(FILE_NAME))
}
