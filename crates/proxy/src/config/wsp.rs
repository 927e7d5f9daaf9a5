//! A gateway's listener for WAP clients.

use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use codec::wbxml::{TokenTable, tables};

use super::caller;
use super::file::GatewaySettings;
use super::mistakes::Check;

/// Its address, and the tables of tokens that its clients have too.
pub(super) fn listener(
    check: &mut Check,
    gateway: &GatewaySettings,
) -> (Option<SocketAddr>, Arc<[TokenTable]>) {
    (address(check, gateway), tokens(check, gateway))
}

fn address(check: &mut Check, gateway: &GatewaySettings) -> Option<SocketAddr> {
    let Some(text) = &gateway.wsp else {
        if gateway.wsp_anywhere.is_some() {
            let what = "wsp_anywhere needs a listener for WAP clients: give 'wsp'";
            check.about("wsp_anywhere", &["wsp"], Err::<(), _>(caller(what)));
        }
        return None;
    };
    let listen = check.take("wsp", super::address("wsp", text).map(Some))?;
    if !listen.ip().to_canonical().is_loopback() && gateway.wsp_anywhere != Some(true) {
        let what = "whoever reaches it can ask for all that edges may, in anybody's name";
        let remedy = "give a loopback address, or 'wsp_anywhere = true' (--wsp-anywhere)";
        let what = format!("wsp '{text}': {what}: {remedy}");
        check.about("wsp", &["wsp_anywhere"], Err::<(), _>(caller(what)));
    }
    Some(listen)
}

/// Longest file with a table, in bytes: one with a name for each code of each page.
const MAX_TABLE_BYTES: u64 = 1 << 20;
/// Most tables.
const MAX_TABLES: usize = 64;

/// Reads the tables of tokens.
fn tokens(check: &mut Check, gateway: &GatewaySettings) -> Arc<[TokenTable]> {
    let Some(files) = &gateway.wsp_tokens else { return Arc::default() };
    if gateway.wsp.is_none() {
        let what = "wsp_tokens needs a listener for WAP clients: give 'wsp'";
        check.about("wsp_tokens", &["wsp"], Err::<(), _>(caller(what)));
    }
    let read = || {
        if files.len() > MAX_TABLES {
            let what = format!("wsp_tokens has {} files, {MAX_TABLES} at most", files.len());
            return Err(caller(what));
        }
        let mut all: Vec<TokenTable> = Vec::new();
        for path in files {
            let table = table(path)
                .map_err(|what| caller(format!("wsp_tokens: '{}': {what}", path.display())))?;
            let others = all.iter().chain(tables());
            if let Some(other) = others.into_iter().find(|one| one.number == table.number) {
                let (path, number) = (path.display(), table.number);
                let what = format!("its number {number:#x} is that of '{}'; change it", other.name);
                return Err(caller(format!("wsp_tokens: '{path}': {what}")));
            }
            all.push(table);
        }
        Ok(all)
    };
    check.take("wsp_tokens", read()).into()
}

fn table(path: &Path) -> Result<TokenTable, String> {
    let mut text = String::new();
    // What a file says of its length need not be so: that of a device or a pipe is none.
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(MAX_TABLE_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_TABLE_BYTES {
        return Err(format!("it is longer than a table may be, {MAX_TABLE_BYTES} bytes"));
    }
    TokenTable::parse(&text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_end_is_refused() {
        let wrong = table(Path::new("/dev/zero")).unwrap_err();
        assert!(wrong.contains("1048576 bytes"), "{wrong}");
        assert!(table(Path::new("/nowhere/a.tokens")).is_err());
    }
}
