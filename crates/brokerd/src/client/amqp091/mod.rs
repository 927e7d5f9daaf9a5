//! AMQP 0.9.1, over TCP or TLS: an exchange of topics, and a queue for who subscribes.

mod message;
mod publisher;
mod subscriber;

use std::time::Duration;

use proto::amqp091::client::{self, Client, Closed, Input, Output};
use proto::amqp091::machine::Credentials;

use super::again::Again;
use super::line::{Happening, Line};
use super::{Settings, Target};
use crate::error::Error;

pub(super) use publisher::publish;
pub(super) use subscriber::subscribe;

/// The exchange that topics go over, where none is named.
const EXCHANGE: &str = "amq.topic";
/// Who one is where nobody says it: brokers have come to know this user at their own host.
const GUEST: &str = "guest";
/// Longest message that is taken.
const MAX_MESSAGE_BYTES: u64 = 256 << 20;
/// How long the broker may take to agree to the end.
const FAREWELL: Duration = Duration::from_secs(10);
/// Codes of closed connections that pass by: 320, an operator or the end; 541, a fault of the
/// server.
const PASSING: [u16; 2] = [320, 541];

/// A client, and its connection where there is one.
struct Talk<'a> {
    target: &'a Target,
    of_client: client::Settings,
    client: Client,
    line: Line<'a>,
    again: Again,
    has_been_open: bool,
}

/// What comes next.
enum Next {
    /// The client says something.
    Said(Output),
    /// What was to be written has left: there is room for more.
    Written,
    /// The connection is broken.
    Broken,
}

impl<'a> Talk<'a> {
    fn new(target: &'a Target, settings: &Settings) -> Result<Self, Error> {
        let seconds = settings.keep_alive.as_secs();
        let heartbeat_s = u16::try_from(seconds).map_err(|_| {
            Error::Caller(format!("a keep-alive of {seconds} s: at most {} s", u16::MAX))
        })?;
        let of_client = client::Settings {
            name: settings.client_id.clone(),
            credentials: credentials(target)?,
            virtual_host: virtual_host(&target.path)?,
            heartbeat_s,
            max_message_bytes: MAX_MESSAGE_BYTES,
        };
        Ok(Self {
            target,
            client: Client::new(Duration::ZERO, of_client.clone()),
            of_client,
            line: Line::new(target),
            again: Again::new(settings.retry),
            has_been_open: false,
        })
    }

    /// Connects, once.
    async fn connect(&mut self) -> Result<(), Error> {
        self.line.connect().await?;
        self.client = Client::new(self.line.now(), self.of_client.clone());
        Ok(())
    }

    /// What comes next. May be dropped while it waits.
    async fn next(&mut self) -> Next {
        loop {
            while let Some(output) = self.client.poll_output() {
                match output {
                    Output::Transmit(bytes) => self.line.leaves.extend_from_slice(&bytes),
                    Output::WakeAt(at) => self.line.wake_at = Some(at),
                    other => {
                        if other == Output::Opened {
                            self.has_been_open = true;
                            self.again.connected();
                        }
                        return Next::Said(other);
                    }
                }
            }
            match self.line.happening().await {
                Happening::Bytes(bytes) => {
                    self.client.handle_input(self.line.now(), Input::Bytes(&bytes));
                }
                Happening::Wake => self.client.handle_input(self.line.now(), Input::Wake),
                Happening::Written => return Next::Written,
                Happening::Lost => return Next::Broken,
            }
        }
    }

    /// The connection is over: makes another.
    ///
    /// # Errors
    /// Where there is none to be had, or the broker does not want this client.
    async fn lost(&mut self, closed: Option<&Closed>) -> Result<(), Error> {
        self.line.drop();
        let (is_passing, what) = match closed {
            None => (true, "the connection is broken".to_owned()),
            Some(Closed::Asked) => (false, "the connection was ended".to_owned()),
            Some(Closed::Silent) => (true, "the broker does not answer".to_owned()),
            Some(Closed::Refused(why)) => {
                (false, format!("the broker sent what it may not send: {why}"))
            }
            Some(Closed::ByServer(code, text)) => {
                let what = format!("the broker has ended the connection: {code} {text}");
                (PASSING.contains(code), what)
            }
        };
        let mut why = Error::System(format!("{}: {what}", self.target.address));
        if !is_passing || !self.has_been_open {
            return Err(why);
        }
        while let Some(pause) = self.again.pause(self.line.now()) {
            tokio::time::sleep(pause).await;
            match self.connect().await {
                Ok(()) => return Ok(()),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// Says that it leaves, once all is written.
    ///
    /// # Errors
    /// Where the broker says before it agrees that it has refused something.
    async fn leave(&mut self) -> Result<(), Error> {
        self.client.close();
        let left = async {
            loop {
                match self.next().await {
                    Next::Said(
                        Output::ChannelClosed(code, text)
                        | Output::Closed(Closed::ByServer(code, text)),
                    ) => return Err(refused(code, &text)),
                    Next::Said(Output::Closed(_)) | Next::Broken => return Ok(()),
                    Next::Said(_) | Next::Written => {}
                }
            }
        };
        let left = tokio::time::timeout(FAREWELL, left).await;
        let _ = self.line.finish().await;
        left.unwrap_or(Ok(()))
    }
}

/// By a user, by the certificate of TLS, or as a guest.
fn credentials(target: &Target) -> Result<Credentials, Error> {
    let has_certificate = target.layers.tls.as_ref().is_some_and(|tls| tls.identity.is_some());
    let (user, password) = match &target.user {
        Some(user) => (user.clone(), target.password.clone().unwrap_or_default()),
        None if has_certificate => return Ok(Credentials::External),
        None => (GUEST.to_owned(), GUEST.as_bytes().to_vec()),
    };
    if user.contains('\0') {
        return Err(Error::Caller("a user has no zero in his name".to_owned()));
    }
    Ok(Credentials::Password { user, password })
}

fn refused(code: u16, text: &str) -> Error {
    Error::System(format!("the broker refuses it: {code} {text}"))
}

/// The virtual host of a URL's path, as brokers have come to read it: what stands behind the
/// slash, with escapes of URLs; without anything `/`.
fn virtual_host(path: &str) -> Result<String, Error> {
    let Some(name) = path.strip_prefix('/').filter(|name| !name.is_empty()) else {
        return Ok("/".to_owned());
    };
    let wrong = || Error::Caller(format!("the virtual host {name}: an escape is % and two digits"));
    let (mut bytes, mut rest) = (Vec::with_capacity(name.len()), name.as_bytes());
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2).ok_or_else(wrong)?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let value = match digits {
            [high, low] => digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        bytes.push(value.and_then(|value| u8::try_from(value).ok()).ok_or_else(wrong)?);
        rest = behind;
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_hosts_are_what_stands_behind_the_slash() {
        for (path, name) in
            [("", "/"), ("/", "/"), ("/ships", "ships"), ("/%2fships", "/ships"), ("/%C3%a4", "ä")]
        {
            assert_eq!(virtual_host(path).unwrap(), name);
        }
        for path in ["/%", "/%2", "/%zz", "/%ff"] {
            assert!(virtual_host(path).is_err(), "{path}");
        }
    }
}
