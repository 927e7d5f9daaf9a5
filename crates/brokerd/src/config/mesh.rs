//! `[mesh]`: other brokers that this one replicates with.

use std::path::PathBuf;

use broker::{MeshMember, MeshSettings, Settings};
use proxy::dial::{Layers, Tls};
use ring::hmac;
use serde::Deserialize;

use super::{Config, Target, read_key, size};
use crate::address::authority;
use crate::error::Error;
use crate::store;

/// Members of a mesh besides this one.
const MAX_MEMBERS: usize = 64;
/// Shortest key, in bytes: what can be guessed keeps nobody out.
const MIN_KEY_BYTES: usize = 16;
/// Publications that wait for one member.
const DEFAULT_QUEUED: usize = 10_000;
const DEFAULT_QUEUED_BYTES: usize = 16 << 20;
/// Longest frame beyond the message in it, in bytes: its topic, its properties' lengths, its head.
const FRAME_BYTES: usize = 256 << 10;
/// Ports of members without and with TLS; there are no usual ones.
const PORT: u16 = 7883;
const SECURE_PORT: u16 = 7884;

/// `[mesh]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeshConfig {
    name: String,
    listen: Option<String>,
    listen_tls: Option<String>,
    max_queued: Option<usize>,
    #[serde(default, deserialize_with = "size")]
    max_queued_bytes: Option<usize>,
    #[serde(default, rename = "member")]
    members: Vec<MemberConfig>,
}

/// `[[mesh.member]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberConfig {
    name: String,
    key: PathBuf,
    url: Option<String>,
    authorities: Option<PathBuf>,
    certificate: Option<PathBuf>,
    private_key: Option<PathBuf>,
    #[serde(default)]
    revoked: bool,
}

impl Config {
    /// Where members connect to, without TLS and with it.
    pub(crate) fn mesh_addresses(&self) -> [Option<&String>; 2] {
        let mesh = self.mesh.as_ref();
        [mesh.and_then(|it| it.listen.as_ref()), mesh.and_then(|it| it.listen_tls.as_ref())]
    }

    /// What the mesh is told, and where its members are, in their order; `None`: there is none.
    ///
    /// # Errors
    /// A value that cannot be, a key that cannot be read.
    pub(crate) fn mesh(&self) -> Result<Option<(MeshSettings, Vec<Target>)>, Error> {
        let Some(said) = &self.mesh else { return Ok(None) };
        let Settings { max_message_bytes, federation, .. } = self.settings()?;
        said.check()?;
        let is_partner = |name: &str| federation.as_deref().is_some_and(|it| it.is_partner(name));
        if let Some(other) = said.members.iter().find(|member| is_partner(&member.name)) {
            let text =
                "is a partner of the federation: a mesh is of one nation, write a [[bridge]]";
            return Err(Error::Caller(format!("[mesh] member {} {text}", other.name)));
        }
        let members = said.members.iter().map(MemberConfig::read);
        let (members, targets) = members.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let mut seed = [0; 32];
        for chunk in seed.chunks_mut(8) {
            chunk.copy_from_slice(&store::random()?.to_be_bytes());
        }
        let settings = MeshSettings {
            name: said.name.as_str().into(),
            members,
            mac,
            seed,
            life: store::random()?,
            max_frame_bytes: max_message_bytes.saturating_add(FRAME_BYTES),
            max_queued: said.max_queued.unwrap_or(DEFAULT_QUEUED),
            max_queued_bytes: said.max_queued_bytes.unwrap_or(DEFAULT_QUEUED_BYTES),
        };
        Ok(Some((settings, targets)))
    }
}

impl MeshConfig {
    fn check(&self) -> Result<(), Error> {
        let wrong = |what: String| Error::Caller(format!("[mesh] {what}"));
        let count = self.members.len();
        if count == 0 || count > MAX_MEMBERS {
            return Err(wrong(format!("{count} [[mesh.member]]: 1 to {MAX_MEMBERS}")));
        }
        let mut names: Vec<&str> = self.members.iter().map(|member| &*member.name).collect();
        names.push(&self.name);
        if let Some(name) = names.iter().find(|name| !broker::is_node(name)) {
            return Err(wrong(format!("name = \"{name}\": 1 to 64 bytes without comma and colon")));
        }
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(format!("name = \"{}\": two of this name", pair[0])));
        }
        if self.max_queued == Some(0) {
            return Err(wrong("max_queued is 0: at least 1".to_owned()));
        }
        let is_reached = self.listen.is_some() || self.listen_tls.is_some();
        if !is_reached && self.members.iter().all(|member| member.url.is_none()) {
            let text = "no member can be reached: listen = \"ADDRESS:PORT\", or a url of a member";
            return Err(wrong(text.to_owned()));
        }
        Ok(())
    }
}

impl MemberConfig {
    fn read(&self) -> Result<(MeshMember, Target), Error> {
        let name = &self.name;
        let wrong = |what: String| Error::Caller(format!("[[mesh.member]] {name}: {what}"));
        let key = read_key(&self.key)?;
        if key.len() < MIN_KEY_BYTES {
            let (path, bytes) = (self.key.display(), key.len());
            let text = format!("the key {path} has {bytes} bytes: at least {MIN_KEY_BYTES}");
            return Err(wrong(text));
        }
        let member = MeshMember {
            name: name.as_str().into(),
            key,
            dials: self.url.is_some(),
            revoked: self.revoked,
        };
        let identity = match (&self.certificate, &self.private_key) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            (None, None) => None,
            _ => return Err(wrong("certificate and private_key go together".to_owned())),
        };
        let url = self.url.as_deref().unwrap_or_default();
        let (rest, port, is_secure) =
            match (url.strip_prefix("mesh://"), url.strip_prefix("meshs://")) {
                (Some(rest), _) => (rest, PORT, false),
                (_, Some(rest)) => (rest, SECURE_PORT, true),
                _ if self.url.is_none() => ("", PORT, false),
                _ => return Err(wrong(format!("url = \"{url}\": mesh://HOST or meshs://HOST"))),
            };
        if !is_secure && (self.authorities.is_some() || identity.is_some()) {
            return Err(wrong("certificates are of use with meshs:// only".to_owned()));
        }
        let at = authority(rest.trim_end_matches('/'), port);
        let (host, address) = match at {
            Some(at) => at,
            None if self.url.is_none() => Default::default(),
            None => return Err(wrong(format!("url = \"{url}\" has no host and port"))),
        };
        let authorities = self.authorities.clone();
        let tls = is_secure.then_some(Tls { protocol: None, authorities, identity });
        let layers = Layers { tls, websocket: None, proxy: None };
        let name = name.clone();
        Ok((member, Target { name, host, address, layers, is_member: true }))
    }
}

/// HMAC with SHA-256 (RFC 2104).
fn mac(key: &[u8], pieces: &[&[u8]]) -> [u8; 32] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let mut context = hmac::Context::with_key(&key);
    pieces.iter().for_each(|piece| context.update(piece));
    let mut out = [0; 32];
    out.iter_mut().zip(context.sign().as_ref()).for_each(|(to, from)| *to = *from);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        let config: Config = toml::from_str(text).unwrap();
        config.mesh().map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_is_said() {
        let member =
            |keys: &str| format!("[[mesh.member]]\nname = \"b\"\nkey = \"none\"\n{keys}\n");
        let with = |keys: &str, member: &str| format!("[mesh]\nname = \"a\"\n{keys}\n{member}");
        for (text, said) in [
            (with("", ""), "0 [[mesh.member]]: 1 to 64"),
            (with("", &member("")), "no member can be reached"),
            (with("listen = \"[::1]:1\"\nmax_queued = 0", &member("")), "at least 1"),
            (with("", &member("url = \"mesh://x\"")), "cannot read the key none"),
            (with("", &[member("url = \"mesh://x\""), member("")].concat()), "two of this name"),
            ("[mesh]\nname = \"a,b\"\n".to_owned() + &member(""), "without comma and colon"),
        ] {
            assert!(wrong(&text).contains(said), "{text}: {}", wrong(&text));
        }
    }

    /// RFC 4231 §4.3.
    #[test]
    fn a_case_of_hmac_holds() {
        let code = mac(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        assert_eq!(code[..4], [0x5b, 0xdc, 0xc1, 0x46]);
    }

    #[test]
    fn the_documented_file_is_read() {
        let text = include_str!("../../../../docs/mesh.md");
        let (_, sample) = text.split_once("```toml\n").unwrap();
        let (sample, _) = sample.split_once("```").unwrap();
        let config: Config = toml::from_str(sample).unwrap();
        let said = config.mesh.clone().unwrap();
        said.check().unwrap();
        assert_eq!(said.max_queued, Some(DEFAULT_QUEUED));
        assert_eq!(said.max_queued_bytes, Some(DEFAULT_QUEUED_BYTES));
        let names: Vec<&str> = said.members.iter().map(|member| &*member.name).collect();
        assert_eq!(names, ["bravo", "charlie"]);
    }
}
