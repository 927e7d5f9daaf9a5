//! Channels: open, closing, and messages put together (AMQP 0.9.1 §4.2.6, §4.3).

use bytes::Bytes;

use super::{Fault, Output, Server, method_of, unexpected};
use crate::amqp091::method::{CONNECTION, ids_of};
use crate::amqp091::{ContentHeader, FrameKind, Method, ReplyCode};

/// Room that is made for a body before any of it has come.
const MAX_FIRST_BYTES: u64 = 16 << 10;
/// Longest messages that a connection may be in the middle of, over all its channels.
const MAX_OPEN_MESSAGES: u64 = 2;

/// A published message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    /// The channel.
    pub channel: u16,
    /// The exchange; empty is the default one.
    pub exchange: String,
    /// The routing key.
    pub routing_key: String,
    /// Whether it comes back when no queue gets it.
    pub is_mandatory: bool,
    /// Whether it comes back when no consumer gets it at once.
    pub is_immediate: bool,
    /// Flags and properties as they came, which have been read once without a fault.
    pub properties: Bytes,
    /// The body.
    pub body: Bytes,
}

/// A message in the middle.
#[derive(Debug)]
pub(super) struct Assembly {
    publish: Publish,
    body: Vec<u8>,
    /// Bytes of the body in all; `None` before the header has come.
    body_bytes: Option<u64>,
}

#[derive(Debug)]
pub(super) enum Channel {
    /// It is open, maybe in the middle of a message.
    Open(Option<Box<Assembly>>),
    /// This side has closed it and waits for the answer.
    Closing {
        /// Whether the client has closed it too.
        is_crossed: bool,
    },
}

impl Server {
    pub(super) fn take_channel(
        &mut self,
        kind: FrameKind,
        channel: u16,
        payload: Bytes,
    ) -> Result<(), Fault> {
        match (self.channels.get(&channel), kind) {
            (None, FrameKind::Method) => self.take_unknown(channel, &payload),
            (None, _) => Err(not_open(channel)),
            (Some(&Channel::Closing { is_crossed }), FrameKind::Method) => {
                self.take_after_close(channel, is_crossed, &payload);
                Ok(())
            }
            // AMQP 0.9.1 §4.5: what was under way is thrown away.
            (Some(Channel::Closing { .. }), _) => Ok(()),
            (Some(Channel::Open(_)), FrameKind::Header) => self.take_header(channel, &payload),
            (Some(Channel::Open(_)), FrameKind::Body) => self.take_body(channel, &payload),
            (Some(Channel::Open(None)), _) => self.take_method(channel, payload),
            (Some(Channel::Open(Some(_))), _) => {
                let ids = ids_of(&payload).unwrap_or_default();
                Err(Fault { ids, ..unexpected("a method in the middle of a message") })
            }
        }
    }

    pub(super) fn replace(&mut self, channel: u16, new: Channel) {
        if let Some(Channel::Open(Some(assembly))) = self.channels.insert(channel, new) {
            self.held_bytes = self.held_bytes.saturating_sub(assembly.body.len() as u64);
        }
    }

    fn open_channel(&mut self, channel: u16) {
        self.replace(channel, Channel::Open(None));
        self.put(channel, &Method::ChannelOpenOk {});
        self.outputs.push_back(Output::ChannelOpened(channel));
    }

    fn take_unknown(&mut self, channel: u16, payload: &[u8]) -> Result<(), Fault> {
        match method_of(payload)? {
            Method::ChannelOpen {} if channel > self.peer.channel_max => {
                let text = format!("channel {channel}, of {} at most", self.peer.channel_max);
                Err(Fault { ids: (20, 10), ..Fault::new(ReplyCode::NotAllowed, text) })
            }
            Method::ChannelOpen {} => {
                self.open_channel(channel);
                Ok(())
            }
            // Of a channel that both sides have closed at the same time.
            Method::ChannelCloseOk {} => Ok(()),
            other => Err(Fault { ids: other.ids(), ..not_open(channel) }),
        }
    }

    fn take_after_close(&mut self, channel: u16, is_crossed: bool, payload: &[u8]) {
        match Method::decode(payload) {
            Ok(Method::ChannelCloseOk {}) => {
                self.channels.remove(&channel);
            }
            Ok(Method::ChannelClose { .. }) => {
                self.put(channel, &Method::ChannelCloseOk {});
                self.replace(channel, Channel::Closing { is_crossed: true });
            }
            // A client that takes our Close for the answer to its own.
            Ok(Method::ChannelOpen {}) if is_crossed => self.open_channel(channel),
            _ => {}
        }
    }

    fn take_method(&mut self, channel: u16, payload: Bytes) -> Result<(), Fault> {
        let method = method_of(&payload)?;
        let ids = method.ids();
        match method {
            Method::ChannelOpen {} => {
                let text = format!("channel {channel} is open already");
                return Err(Fault { ids, ..Fault::new(ReplyCode::ChannelError, text) });
            }
            Method::ChannelClose { .. } => {
                self.channels.remove(&channel);
                self.put(channel, &Method::ChannelCloseOk {});
                self.outputs.push_back(Output::ChannelClosed(channel));
            }
            Method::ChannelCloseOk {} => {}
            Method::BasicPublish { exchange, routing_key, mandatory, immediate } => {
                let publish = Publish {
                    channel,
                    exchange: exchange.to_owned(),
                    routing_key: routing_key.to_owned(),
                    is_mandatory: mandatory,
                    is_immediate: immediate,
                    properties: Bytes::new(),
                    body: Bytes::new(),
                };
                let assembly = Assembly { publish, body: Vec::new(), body_bytes: None };
                self.replace(channel, Channel::Open(Some(Box::new(assembly))));
            }
            other if other.has_content() || ids.0 == CONNECTION => {
                let text = "this method has no place here";
                return Err(Fault { ids, ..Fault::new(ReplyCode::CommandInvalid, text) });
            }
            _ => self.outputs.push_back(Output::Method { channel, payload }),
        }
        Ok(())
    }

    fn take_header(&mut self, channel: u16, payload: &[u8]) -> Result<(), Fault> {
        let Some(Channel::Open(Some(assembly))) = self.channels.get_mut(&channel) else {
            return Err(unexpected("a content header without a method"));
        };
        if assembly.body_bytes.is_some() {
            return Err(unexpected("a second content header"));
        }
        let header = ContentHeader::decode(payload)
            .map_err(|error| Fault::new(ReplyCode::SyntaxError, error.to_string()))?;
        let max_bytes = self.settings.max_message_bytes;
        if header.body_bytes > max_bytes {
            let text = format!("{} bytes, of {max_bytes} at most", header.body_bytes);
            self.close_channel(channel, ReplyCode::ContentTooLarge, &text, (60, 40));
            return Ok(());
        }
        assembly.body_bytes = Some(header.body_bytes);
        assembly.publish.properties = Bytes::copy_from_slice(header.properties);
        let first_bytes = header.body_bytes.min(MAX_FIRST_BYTES);
        assembly.body.reserve_exact(usize::try_from(first_bytes).unwrap_or(0));
        self.finish_if_whole(channel);
        Ok(())
    }

    fn take_body(&mut self, channel: u16, payload: &[u8]) -> Result<(), Fault> {
        let Some(Channel::Open(Some(assembly))) = self.channels.get_mut(&channel) else {
            return Err(unexpected("a body without a method"));
        };
        let Some(body_bytes) = assembly.body_bytes else {
            return Err(unexpected("a body without a header"));
        };
        if (assembly.body.len() + payload.len()) as u64 > body_bytes {
            let text = format!("more than the {body_bytes} bytes of body that were announced");
            return Err(Fault::new(ReplyCode::FrameError, text));
        }
        self.held_bytes += payload.len() as u64;
        let max_bytes = self.settings.max_message_bytes.saturating_mul(MAX_OPEN_MESSAGES);
        if self.held_bytes > max_bytes {
            let text = format!("more than {max_bytes} bytes of messages that are not whole");
            return Err(Fault::new(ReplyCode::ResourceError, text));
        }
        assembly.body.extend_from_slice(payload);
        self.finish_if_whole(channel);
        Ok(())
    }

    fn finish_if_whole(&mut self, channel: u16) {
        let Some(Channel::Open(message)) = self.channels.get_mut(&channel) else { return };
        let is_whole =
            |assembly: &mut Box<Assembly>| assembly.body_bytes == Some(assembly.body.len() as u64);
        if let Some(assembly) = message.take_if(is_whole) {
            self.held_bytes = self.held_bytes.saturating_sub(assembly.body.len() as u64);
            let body = Bytes::from(assembly.body);
            self.outputs.push_back(Output::Publish(Publish { body, ..assembly.publish }));
        }
    }
}

fn not_open(channel: u16) -> Fault {
    Fault::new(ReplyCode::ChannelError, format!("channel {channel} is not open"))
}
