//! `[[bridge]]`: other brokers that this one connects to.

use std::path::PathBuf;
use std::time::Duration;

use broker::{Bridge, BridgeRoute, Grade, check_filter};
use bytes::Bytes;
use proto::mqtt::Version;
use proto::urgency::Urgency;
use proxy::dial::{Layers, Proxy, Tls};
use serde::Deserialize;

use super::{period, yes};
use crate::address::{authority, proxy_authority};
use crate::error::Error;
use crate::password::read_password;

/// Most bridges, and most routes of one.
const MAX_BRIDGES: usize = 1000;
const MAX_ROUTES: usize = 1000;
/// Longest time that what is sent may wait for more.
const MAX_BATCH: Duration = Duration::from_secs(60);
/// Usual ports (IANA: mqtt, secure-mqtt).
const PORT: u16 = 1883;
const SECURE_PORT: u16 = 8883;

/// `[[bridge]]`.
// table: one field a key of the file
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BridgeConfig {
    name: String,
    url: String,
    proxy: Option<String>,
    urgency: Option<String>,
    version: Option<String>,
    client_id: String,
    user: Option<String>,
    password_file: Option<PathBuf>,
    authorities: Option<PathBuf>,
    certificate: Option<PathBuf>,
    private_key: Option<PathBuf>,
    #[serde(default, deserialize_with = "period")]
    keep_alive: Option<Duration>,
    #[serde(default, deserialize_with = "period")]
    expiry: Option<Duration>,
    max_inflight: Option<u16>,
    #[serde(default, deserialize_with = "period")]
    batch: Option<Duration>,
    compress: Option<bool>,
    #[serde(default, rename = "route")]
    routes: Vec<RouteConfig>,
}

/// `[[bridge.route]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteConfig {
    filter: String,
    #[serde(default = "yes")]
    comes: bool,
    #[serde(default = "yes")]
    goes: bool,
    max_qos: Option<u8>,
    #[serde(default)]
    local: String,
    #[serde(default)]
    remote: String,
}

/// Where a bridge goes, and through what.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// By which logs know it.
    pub(crate) name: String,
    /// Host.
    pub(crate) host: String,
    /// Host and port.
    pub(crate) address: String,
    pub(crate) layers: Layers,
    /// It is a member of the mesh.
    pub(crate) is_member: bool,
}

impl BridgeConfig {
    /// What the broker is told, and where it goes.
    fn read(&self) -> Result<(Bridge, Target), Error> {
        let wrong = |what: String| Error::Caller(format!("[[bridge]] {}: {what}", self.name));
        if self.routes.is_empty() || self.routes.len() > MAX_ROUTES {
            let count = self.routes.len();
            return Err(wrong(format!("{count} [[bridge.route]]: 1 to {MAX_ROUTES}")));
        }
        let version = match self.version.as_deref() {
            None | Some("5") => Version::V5,
            Some("3.1.1") => Version::V311,
            Some(other) => return Err(wrong(format!("version = \"{other}\": 5 or 3.1.1"))),
        };
        let keep_alive = self.keep_alive.unwrap_or(Duration::from_secs(60));
        if keep_alive.as_secs() > u64::from(u16::MAX) {
            return Err(wrong(format!("keep_alive is over {} s", u16::MAX)));
        }
        let batch = self.batch.unwrap_or_default();
        if batch > MAX_BATCH {
            return Err(wrong(format!("batch is over {} s", MAX_BATCH.as_secs())));
        }
        if self.compress == Some(true) && version != Version::V5 {
            return Err(wrong("compress = true needs version = \"5\"".to_owned()));
        }
        for text in [Some(&self.client_id), self.user.as_ref()].into_iter().flatten() {
            text.parse::<proto::mqtt::Text>()
                .map_err(|error| wrong(format!("\"{text}\": {error}")))?;
        }
        let max_inflight = self.max_inflight.unwrap_or(100);
        if max_inflight == 0 {
            return Err(wrong("max_inflight is 0: at least 1".to_owned()));
        }
        let routes = self.routes.iter().map(|route| route.read(&wrong));
        let password = self.password_file.as_deref().map(read_password).transpose();
        let password = password.map_err(|error| wrong(error.to_string()))?;
        let bridge = Bridge {
            name: self.name.as_str().into(),
            version,
            client_id: self.client_id.clone(),
            user: self.user.clone(),
            password: password.map(Bytes::from),
            keep_alive,
            expiry: self.expiry.unwrap_or(Duration::from_secs(24 * 3600)),
            max_inflight,
            batch,
            compress: self.compress.unwrap_or(version == Version::V5),
            routes: routes.collect::<Result<_, _>>()?,
        };
        Ok((bridge, self.target(&wrong)?))
    }

    fn target(&self, wrong: &impl Fn(String) -> Error) -> Result<Target, Error> {
        let url = &self.url;
        let (rest, port, is_secure) =
            match (url.strip_prefix("mqtt://"), url.strip_prefix("mqtts://")) {
                (Some(rest), _) => (rest, PORT, false),
                (_, Some(rest)) => (rest, SECURE_PORT, true),
                _ => return Err(wrong(format!("url = \"{url}\": mqtt://HOST or mqtts://HOST"))),
            };
        let (host, address) = authority(rest.trim_end_matches('/'), port)
            .ok_or_else(|| wrong(format!("url = \"{url}\" has no host and port")))?;
        let identity = match (&self.certificate, &self.private_key) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
            (None, None) => None,
            _ => return Err(wrong("certificate and private_key go together".to_owned())),
        };
        if !is_secure && (self.authorities.is_some() || identity.is_some()) {
            return Err(wrong("certificates are of use with mqtts:// only".to_owned()));
        }
        let authorities = self.authorities.clone();
        let tls = is_secure.then_some(Tls { protocol: None, authorities, identity });
        let proxy = self.proxy.as_deref().map(|proxy| self.proxy(proxy, wrong)).transpose()?;
        if proxy.is_none() && self.urgency.is_some() {
            return Err(wrong("urgency is what a proxy is told: name one".to_owned()));
        }
        let layers = Layers { tls, websocket: None, proxy };
        let name = self.name.clone();
        Ok(Target { name, host, address, layers, is_member: false })
    }

    fn proxy(&self, url: &str, wrong: &impl Fn(String) -> Error) -> Result<Proxy, Error> {
        let authority = proxy_authority(url)
            .ok_or_else(|| wrong(format!("proxy = \"{url}\": http://HOST:PORT")))?;
        let mut fields = Vec::new();
        if let Some(text) = &self.urgency {
            let urgency = Urgency::parse(text).map_err(wrong)?;
            fields.push(("priority", format!("u={}", urgency.get())));
        }
        Ok(Proxy { authority, fields })
    }
}

impl RouteConfig {
    fn read(&self, wrong: &impl Fn(String) -> Error) -> Result<BridgeRoute, Error> {
        let max_qos = self.max_qos.unwrap_or(2);
        let max_grade =
            Grade::new(max_qos).ok_or_else(|| wrong(format!("max_qos {max_qos}: 0 to 2")))?;
        let route = BridgeRoute {
            filter: self.filter.clone(),
            comes: self.comes,
            goes: self.goes,
            max_grade,
            local: self.local.clone(),
            remote: self.remote.clone(),
        };
        if !self.comes && !self.goes {
            let filter = &self.filter;
            return Err(wrong(format!("the route {filter} goes neither way: comes or goes")));
        }
        for filter in [route.local_filter(), route.remote_filter()] {
            check_filter(&filter).map_err(|what| wrong(format!("\"{filter}\": {what}")))?;
        }
        Ok(route)
    }
}

/// All of them, whose names differ.
pub(super) fn read_all(all: &[BridgeConfig]) -> Result<(Vec<Bridge>, Vec<Target>), Error> {
    if all.len() > MAX_BRIDGES {
        return Err(Error::Caller(format!("{} [[bridge]]: at most {MAX_BRIDGES}", all.len())));
    }
    let mut names: Vec<&str> = all.iter().map(|bridge| &*bridge.name).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::Caller(format!("[[bridge]] {}: two of this name", pair[0])));
    }
    let read: Result<Vec<_>, _> = all.iter().map(BridgeConfig::read).collect();
    Ok(read?.into_iter().unzip())
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn wrong(text: &str) -> String {
        let config: Config = toml::from_str(text).unwrap();
        config.bridges().map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_is_said() {
        let route = "[[bridge.route]]\nfilter = \"#\"\n";
        let with =
            |keys: &str| format!("[[bridge]]\nname = \"b\"\nclient_id = \"c\"\n{keys}\n{route}");
        for (text, said) in [
            (with("url = \"http://x\""), "mqtt://HOST"),
            (with("url = \"mqtt://x\"\nversion = \"4\""), "5 or 3.1.1"),
            (with("url = \"mqtt://x\"\nurgency = \"flash\""), "name one"),
            (with("url = \"mqtt://x\"\ncertificate = \"c\""), "go together"),
            (with("url = \"mqtt://x\"\nversion = \"3.1.1\"\ncompress = true"), "needs version"),
            (with("url = \"mqtt://x\"\nbatch = \"2 min\""), "over 60 s"),
            (
                "[[bridge]]\nname = \"b\"\nclient_id = \"c\"\nurl = \"mqtt://x\"".to_owned(),
                "0 [[bridge.route]]",
            ),
            ([with("url = \"mqtt://x\""), with("url = \"mqtt://y\"")].concat(), "two of this name"),
        ] {
            assert!(wrong(&text).contains(said), "{text}: {}", wrong(&text));
        }
    }
}
