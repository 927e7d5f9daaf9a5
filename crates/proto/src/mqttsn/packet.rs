//! Messages of clients, gateways and forwarders (MQTT-SN 1.2 §5.2 to §5.4).

use super::field::{Code, Filter, Qos, Topic, flag};
use super::forward::ENCAPSULATED;
use super::wire::{Reader, Writer};
use crate::Error;

/// Longest message: what a length of three octets can say (MQTT-SN 1.2 §5.2.1).
pub const MAX_MESSAGE_BYTES: usize = 0xffff;
/// Characters that a client id may have (MQTT-SN 1.2 §5.3.1). Longer ones are read all the same.
pub const MAX_CLIENT_ID_CHARS: usize = 23;
/// The protocol id of this version (MQTT-SN 1.2 §5.3.8).
pub const PROTOCOL_ID: u8 = 0x01;

/// Says that the length follows in two octets.
const LONG: u8 = 0x01;
/// Octets of a header whose length has one octet, and of one whose length has three.
const SHORT_HEADER_BYTES: usize = 2;
const LONG_HEADER_BYTES: usize = 4;

/// Types of messages (MQTT-SN 1.2 table 3).
mod msg_type {
    pub(super) const ADVERTISE: u8 = 0x00;
    pub(super) const SEARCHGW: u8 = 0x01;
    pub(super) const GWINFO: u8 = 0x02;
    pub(super) const CONNECT: u8 = 0x04;
    pub(super) const CONNACK: u8 = 0x05;
    pub(super) const WILLTOPICREQ: u8 = 0x06;
    pub(super) const WILLTOPIC: u8 = 0x07;
    pub(super) const WILLMSGREQ: u8 = 0x08;
    pub(super) const WILLMSG: u8 = 0x09;
    pub(super) const REGISTER: u8 = 0x0a;
    pub(super) const REGACK: u8 = 0x0b;
    pub(super) const PUBLISH: u8 = 0x0c;
    pub(super) const PUBACK: u8 = 0x0d;
    pub(super) const PUBCOMP: u8 = 0x0e;
    pub(super) const PUBREC: u8 = 0x0f;
    pub(super) const PUBREL: u8 = 0x10;
    pub(super) const SUBSCRIBE: u8 = 0x12;
    pub(super) const SUBACK: u8 = 0x13;
    pub(super) const UNSUBSCRIBE: u8 = 0x14;
    pub(super) const UNSUBACK: u8 = 0x15;
    pub(super) const PINGREQ: u8 = 0x16;
    pub(super) const PINGRESP: u8 = 0x17;
    pub(super) const DISCONNECT: u8 = 0x18;
    pub(super) const WILLTOPICUPD: u8 = 0x1a;
    pub(super) const WILLTOPICRESP: u8 = 0x1b;
    pub(super) const WILLMSGUPD: u8 = 0x1c;
    pub(super) const WILLMSGRESP: u8 = 0x1d;
}

/// A publication, in either direction (MQTT-SN 1.2 §5.4.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// What it is about.
    pub topic: Topic,
    /// 0 where the quality of service is 0 or −1.
    pub msg_id: u16,
    /// The data.
    pub data: &'a [u8],
    /// The quality of service.
    pub qos: Qos,
    /// Whether it is kept for later subscribers.
    pub retain: bool,
    /// Whether it was transmitted before.
    pub dup: bool,
}

/// Where a will is published (MQTT-SN 1.2 §5.4.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WillTopic<'a> {
    /// The name.
    pub topic: &'a str,
    /// The quality of service; −1 has no meaning here.
    pub qos: Qos,
    /// Whether the will is kept for later subscribers.
    pub retain: bool,
}

/// A message. Bits of flags that have no meaning in it are not looked at, and written as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A gateway says from time to time that it is there (MQTT-SN 1.2 §5.4.1).
    Advertise {
        /// The gateway.
        gateway_id: u8,
        /// Seconds until the next one.
        duration_s: u16,
    },
    /// A client looks for gateways (MQTT-SN 1.2 §5.4.2).
    SearchGw {
        /// How far it is to be broadcast; 0: to all nodes.
        radius: u8,
    },
    /// The answer of a gateway, or of a client that knows one (MQTT-SN 1.2 §5.4.3).
    GwInfo {
        /// The gateway.
        gateway_id: u8,
        /// Its address; empty where the gateway answers itself.
        address: &'a [u8],
    },
    /// A client asks for a connection, or says that it sleeps no more (MQTT-SN 1.2 §5.4.4).
    Connect {
        /// Whether it is to be asked for its will.
        will: bool,
        /// Whether what is known of it from before goes.
        clean_session: bool,
        /// [`PROTOCOL_ID`], unless it is of another version.
        protocol_id: u8,
        /// The keep-alive time in seconds; 0 where there is none.
        duration_s: u16,
        /// Who it is.
        client_id: &'a str,
    },
    /// The answer to a CONNECT (MQTT-SN 1.2 §5.4.5).
    ConnAck {
        /// How it ended.
        code: Code,
    },
    /// A gateway asks for the topic of the will (MQTT-SN 1.2 §5.4.6).
    WillTopicReq,
    /// The topic of the will; without one the will is deleted (MQTT-SN 1.2 §5.4.7).
    WillTopic(Option<WillTopic<'a>>),
    /// A gateway asks for the message of the will (MQTT-SN 1.2 §5.4.8).
    WillMsgReq,
    /// The message of the will (MQTT-SN 1.2 §5.4.9).
    WillMsg {
        /// Its data.
        message: &'a [u8],
    },
    /// A client asks for an id, or a gateway says one (MQTT-SN 1.2 §5.4.10).
    Register {
        /// 0 from a client.
        topic_id: u16,
        /// Matches the answer with the request.
        msg_id: u16,
        /// The name, without wildcards.
        name: &'a str,
    },
    /// The answer to a REGISTER (MQTT-SN 1.2 §5.4.11).
    RegAck {
        /// The id.
        topic_id: u16,
        /// That of the REGISTER.
        msg_id: u16,
        /// How it ended.
        code: Code,
    },
    /// A publication.
    Publish(Publish<'a>),
    /// The answer to a PUBLISH of level 1, or that one of any level was refused
    /// (MQTT-SN 1.2 §5.4.13).
    PubAck {
        /// The field of the PUBLISH, see [`Topic::value`].
        topic_id: u16,
        /// That of the PUBLISH.
        msg_id: u16,
        /// How it ended.
        code: Code,
    },
    /// A PUBLISH of level 2 has arrived (MQTT-SN 1.2 §5.4.14).
    PubRec {
        /// That of the PUBLISH.
        msg_id: u16,
    },
    /// Its msg id may be forgotten.
    PubRel {
        /// That of the PUBLISH.
        msg_id: u16,
    },
    /// It was forgotten.
    PubComp {
        /// That of the PUBLISH.
        msg_id: u16,
    },
    /// A client asks for publications (MQTT-SN 1.2 §5.4.15).
    Subscribe {
        /// Whether it was transmitted before.
        dup: bool,
        /// The quality of service asked for.
        qos: Qos,
        /// Matches the answer with the request.
        msg_id: u16,
        /// Which topics.
        filter: Filter<'a>,
    },
    /// The answer to a SUBSCRIBE (MQTT-SN 1.2 §5.4.16).
    SubAck {
        /// The quality of service granted.
        qos: Qos,
        /// The id of the topic; 0 where the filter has wildcards.
        topic_id: u16,
        /// That of the SUBSCRIBE.
        msg_id: u16,
        /// How it ended.
        code: Code,
    },
    /// A client wants no more publications (MQTT-SN 1.2 §5.4.17).
    Unsubscribe {
        /// Matches the answer with the request.
        msg_id: u16,
        /// Which topics.
        filter: Filter<'a>,
    },
    /// The answer to an UNSUBSCRIBE (MQTT-SN 1.2 §5.4.18).
    UnsubAck {
        /// That of the UNSUBSCRIBE.
        msg_id: u16,
    },
    /// Whether the other is there; with a client id it is a sleeping client that asks for what
    /// waits for it (MQTT-SN 1.2 §5.4.19).
    PingReq {
        /// Who sleeps; else empty.
        client_id: &'a str,
    },
    /// The other is there, or nothing more waits (MQTT-SN 1.2 §5.4.20).
    PingResp,
    /// The end of a connection, or its sleep (MQTT-SN 1.2 §5.4.21).
    Disconnect {
        /// For how many seconds a client wants to sleep.
        duration_s: Option<u16>,
    },
    /// A client changes where its will goes, or deletes it (MQTT-SN 1.2 §5.4.22).
    WillTopicUpd(Option<WillTopic<'a>>),
    /// A client changes its will (MQTT-SN 1.2 §5.4.23).
    WillMsgUpd {
        /// Its data.
        message: &'a [u8],
    },
    /// The answer to a WILLTOPICUPD (MQTT-SN 1.2 §5.4.24).
    WillTopicResp {
        /// How it ended.
        code: Code,
    },
    /// The answer to a WILLMSGUPD (MQTT-SN 1.2 §5.4.25).
    WillMsgResp {
        /// How it ended.
        code: Code,
    },
}

impl<'a> Packet<'a> {
    /// Reads a whole datagram, or what a forwarder passed on.
    ///
    /// # Errors
    /// [`Error::Truncated`] where it ends too early, and [`Error::Peer`] for a length that is not
    /// the datagram's, for octets behind the last field, for reserved types of messages and of
    /// topic ids, for names that are no UTF-8, and for the encapsulation of a forwarder, which is
    /// for [`super::Forwarded`].
    pub fn decode(datagram: &'a [u8]) -> Result<Self, Error> {
        let (msg_type, mut reader) = header(datagram)?;
        let packet = match msg_type {
            msg_type::ADVERTISE..=msg_type::GWINFO => discovery(msg_type, &mut reader)?,
            msg_type::CONNECT..=msg_type::WILLMSG
            | msg_type::PINGREQ..=msg_type::DISCONNECT
            | msg_type::WILLTOPICUPD..=msg_type::WILLMSGRESP => connection(msg_type, &mut reader)?,
            msg_type::REGISTER..=msg_type::PUBREL => publication(msg_type, &mut reader)?,
            msg_type::SUBSCRIBE..=msg_type::UNSUBACK => subscription(msg_type, &mut reader)?,
            _ => return Err(reserved(msg_type)),
        };
        reader.finish()?;
        Ok(packet)
    }

    /// Writes the message to the begin of `room` and returns how many octets it has.
    ///
    /// # Errors
    /// [`Error::Limit`] with the octets needed as its value where there is less room, or where
    /// these are over [`MAX_MESSAGE_BYTES`].
    pub fn encode(&self, room: &mut [u8]) -> Result<usize, Error> {
        let len = self.encoded_len();
        let mut writer = Writer::new(room);
        match (u8::try_from(len), u16::try_from(len)) {
            (Ok(len), _) => writer.put(&[len]),
            (_, Ok(len)) => {
                writer.put(&[LONG]);
                writer.u16(len);
            }
            _ => {
                let (value, limit) = (len as u64, MAX_MESSAGE_BYTES as u64);
                return Err(Error::Limit { what: "a message of MQTT-SN in bytes", value, limit });
            }
        }
        writer.put(&[self.msg_type()]);
        self.write(&mut writer);
        writer.finish()
    }

    /// Octets of the message (MQTT-SN 1.2 §5.2.1).
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let mut counter = Writer::new(&mut []);
        self.write(&mut counter);
        match counter.len() + SHORT_HEADER_BYTES {
            len @ ..=0xff => len,
            len => len + LONG_HEADER_BYTES - SHORT_HEADER_BYTES,
        }
    }

    const fn msg_type(&self) -> u8 {
        match self {
            Self::Advertise { .. } => msg_type::ADVERTISE,
            Self::SearchGw { .. } => msg_type::SEARCHGW,
            Self::GwInfo { .. } => msg_type::GWINFO,
            Self::Connect { .. } => msg_type::CONNECT,
            Self::ConnAck { .. } => msg_type::CONNACK,
            Self::WillTopicReq => msg_type::WILLTOPICREQ,
            Self::WillTopic(_) => msg_type::WILLTOPIC,
            Self::WillMsgReq => msg_type::WILLMSGREQ,
            Self::WillMsg { .. } => msg_type::WILLMSG,
            Self::Register { .. } => msg_type::REGISTER,
            Self::RegAck { .. } => msg_type::REGACK,
            Self::Publish(_) => msg_type::PUBLISH,
            Self::PubAck { .. } => msg_type::PUBACK,
            Self::PubRec { .. } => msg_type::PUBREC,
            Self::PubRel { .. } => msg_type::PUBREL,
            Self::PubComp { .. } => msg_type::PUBCOMP,
            Self::Subscribe { .. } => msg_type::SUBSCRIBE,
            Self::SubAck { .. } => msg_type::SUBACK,
            Self::Unsubscribe { .. } => msg_type::UNSUBSCRIBE,
            Self::UnsubAck { .. } => msg_type::UNSUBACK,
            Self::PingReq { .. } => msg_type::PINGREQ,
            Self::PingResp => msg_type::PINGRESP,
            Self::Disconnect { .. } => msg_type::DISCONNECT,
            Self::WillTopicUpd(_) => msg_type::WILLTOPICUPD,
            Self::WillTopicResp { .. } => msg_type::WILLTOPICRESP,
            Self::WillMsgUpd { .. } => msg_type::WILLMSGUPD,
            Self::WillMsgResp { .. } => msg_type::WILLMSGRESP,
        }
    }

    /// Writes what follows the header.
    fn write(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::WillTopicReq | Self::WillMsgReq | Self::PingResp => {}
            Self::Advertise { gateway_id, duration_s } => {
                writer.put(&[gateway_id]);
                writer.u16(duration_s);
            }
            Self::SearchGw { radius } => writer.put(&[radius]),
            Self::GwInfo { gateway_id, address } => {
                writer.put(&[gateway_id]);
                writer.put(address);
            }
            Self::Connect { will, clean_session, protocol_id, duration_s, client_id } => {
                let flags = set(will, flag::WILL) | set(clean_session, flag::CLEAN_SESSION);
                writer.put(&[flags, protocol_id]);
                writer.u16(duration_s);
                writer.put(client_id.as_bytes());
            }
            Self::ConnAck { code } | Self::WillTopicResp { code } | Self::WillMsgResp { code } => {
                writer.put(&[code.0]);
            }
            Self::WillTopic(topic) | Self::WillTopicUpd(topic) => {
                let Some(WillTopic { topic, qos, retain }) = topic else { return };
                writer.put(&[qos.bits() | set(retain, flag::RETAIN)]);
                writer.put(topic.as_bytes());
            }
            Self::WillMsg { message } | Self::WillMsgUpd { message } => writer.put(message),
            Self::Register { topic_id, msg_id, name } => {
                writer.u16(topic_id);
                writer.u16(msg_id);
                writer.put(name.as_bytes());
            }
            Self::RegAck { topic_id, msg_id, code } | Self::PubAck { topic_id, msg_id, code } => {
                writer.u16(topic_id);
                writer.u16(msg_id);
                writer.put(&[code.0]);
            }
            Self::Publish(Publish { topic, msg_id, data, qos, retain, dup }) => {
                let flags = set(dup, flag::DUP) | set(retain, flag::RETAIN) | topic.bits();
                writer.put(&[flags | qos.bits()]);
                writer.u16(topic.value());
                writer.u16(msg_id);
                writer.put(data);
            }
            Self::PubRec { msg_id }
            | Self::PubRel { msg_id }
            | Self::PubComp { msg_id }
            | Self::UnsubAck { msg_id } => writer.u16(msg_id),
            Self::Subscribe { dup, qos, msg_id, filter } => {
                write_filter(set(dup, flag::DUP) | qos.bits(), msg_id, filter, writer);
            }
            Self::Unsubscribe { msg_id, filter } => write_filter(0, msg_id, filter, writer),
            Self::SubAck { qos, topic_id, msg_id, code } => {
                writer.put(&[qos.bits()]);
                writer.u16(topic_id);
                writer.u16(msg_id);
                writer.put(&[code.0]);
            }
            Self::PingReq { client_id } => writer.put(client_id.as_bytes()),
            Self::Disconnect { duration_s } => duration_s.into_iter().for_each(|s| writer.u16(s)),
        }
    }
}

/// Marks a PUBLISH or SUBSCRIBE that was encoded as one that was transmitted before
/// (MQTT-SN 1.2 §5.3.4). Other messages have no such flag and stay as they are.
pub fn set_dup(message: &mut [u8]) {
    let flags = match message {
        [LONG, _, _, msg_type::PUBLISH | msg_type::SUBSCRIBE, flags, ..]
        | [2..=0xff, msg_type::PUBLISH | msg_type::SUBSCRIBE, flags, ..] => flags,
        _ => return,
    };
    *flags |= flag::DUP;
}

const fn set(is_set: bool, bit: u8) -> u8 {
    if is_set { bit } else { 0 }
}

fn write_filter(flags: u8, msg_id: u16, filter: Filter<'_>, writer: &mut Writer<'_>) {
    writer.put(&[flags | filter.bits()]);
    writer.u16(msg_id);
    match filter {
        Filter::Name(name) => writer.put(name.as_bytes()),
        Filter::Predefined(id) => writer.u16(id),
        Filter::Short(name) => writer.put(&name),
    }
}

fn reserved(msg_type: u8) -> Error {
    let what = match msg_type {
        ENCAPSULATED => "a forwarder's message within another",
        _ => "reserved type of message",
    };
    Error::Peer { what, value: msg_type.into() }
}

/// The type of a message and what follows its header (MQTT-SN 1.2 §5.2).
fn header(datagram: &[u8]) -> Result<(u8, Reader<'_>), Error> {
    let mut reader = Reader::new(datagram);
    let len = match reader.byte("the length")? {
        LONG => reader.u16("the length")?,
        len => len.into(),
    };
    let msg_type = reader.byte("the type of a message")?;
    match usize::from(len) {
        len if len == datagram.len() => Ok((msg_type, reader)),
        len if len > datagram.len() => Err(Error::Truncated { what: "a message" }),
        _ => Err(Error::Peer { what: "a length below the datagram's", value: len.into() }),
    }
}

fn discovery<'a>(msg_type: u8, reader: &mut Reader<'a>) -> Result<Packet<'a>, Error> {
    Ok(match msg_type {
        msg_type::ADVERTISE => {
            let gateway_id = reader.byte("the gateway id")?;
            Packet::Advertise { gateway_id, duration_s: reader.u16("the duration")? }
        }
        msg_type::SEARCHGW => Packet::SearchGw { radius: reader.byte("the radius")? },
        _ => {
            let gateway_id = reader.byte("the gateway id")?;
            Packet::GwInfo { gateway_id, address: reader.rest() }
        }
    })
}

fn connection<'a>(msg_type: u8, reader: &mut Reader<'a>) -> Result<Packet<'a>, Error> {
    Ok(match msg_type {
        msg_type::CONNECT => {
            let flags = reader.byte("the flags")?;
            Packet::Connect {
                will: flags & flag::WILL != 0,
                clean_session: flags & flag::CLEAN_SESSION != 0,
                protocol_id: reader.byte("the protocol id")?,
                duration_s: reader.u16("the duration")?,
                client_id: reader.text("client id that is no UTF-8")?,
            }
        }
        msg_type::CONNACK => Packet::ConnAck { code: code(reader)? },
        msg_type::WILLTOPICREQ => Packet::WillTopicReq,
        msg_type::WILLTOPIC => Packet::WillTopic(will_topic(reader)?),
        msg_type::WILLMSGREQ => Packet::WillMsgReq,
        msg_type::WILLMSG => Packet::WillMsg { message: reader.rest() },
        msg_type::PINGREQ => {
            Packet::PingReq { client_id: reader.text("client id that is no UTF-8")? }
        }
        msg_type::PINGRESP => Packet::PingResp,
        msg_type::DISCONNECT => {
            let has_duration = !reader.is_empty();
            let duration_s = has_duration.then(|| reader.u16("the duration")).transpose()?;
            Packet::Disconnect { duration_s }
        }
        msg_type::WILLTOPICUPD => Packet::WillTopicUpd(will_topic(reader)?),
        msg_type::WILLTOPICRESP => Packet::WillTopicResp { code: code(reader)? },
        msg_type::WILLMSGUPD => Packet::WillMsgUpd { message: reader.rest() },
        _ => Packet::WillMsgResp { code: code(reader)? },
    })
}

fn publication<'a>(msg_type: u8, reader: &mut Reader<'a>) -> Result<Packet<'a>, Error> {
    Ok(match msg_type {
        msg_type::REGISTER => Packet::Register {
            topic_id: topic_id(reader)?,
            msg_id: msg_id(reader)?,
            name: reader.text("topic name that is no UTF-8")?,
        },
        msg_type::REGACK => Packet::RegAck {
            topic_id: topic_id(reader)?,
            msg_id: msg_id(reader)?,
            code: code(reader)?,
        },
        msg_type::PUBLISH => {
            let flags = reader.byte("the flags")?;
            Packet::Publish(Publish {
                topic: Topic::decode(flags, topic_id(reader)?)?,
                msg_id: msg_id(reader)?,
                data: reader.rest(),
                qos: Qos::of_bits(flags),
                retain: flags & flag::RETAIN != 0,
                dup: flags & flag::DUP != 0,
            })
        }
        msg_type::PUBACK => Packet::PubAck {
            topic_id: topic_id(reader)?,
            msg_id: msg_id(reader)?,
            code: code(reader)?,
        },
        msg_type::PUBCOMP => Packet::PubComp { msg_id: msg_id(reader)? },
        msg_type::PUBREC => Packet::PubRec { msg_id: msg_id(reader)? },
        _ => Packet::PubRel { msg_id: msg_id(reader)? },
    })
}

fn subscription<'a>(msg_type: u8, reader: &mut Reader<'a>) -> Result<Packet<'a>, Error> {
    Ok(match msg_type {
        msg_type::SUBSCRIBE => {
            let flags = reader.byte("the flags")?;
            let msg_id = msg_id(reader)?;
            let filter = Filter::decode(flags, reader)?;
            let (dup, qos) = (flags & flag::DUP != 0, Qos::of_bits(flags));
            Packet::Subscribe { dup, qos, msg_id, filter }
        }
        msg_type::SUBACK => Packet::SubAck {
            qos: Qos::of_bits(reader.byte("the flags")?),
            topic_id: topic_id(reader)?,
            msg_id: msg_id(reader)?,
            code: code(reader)?,
        },
        msg_type::UNSUBSCRIBE => {
            let flags = reader.byte("the flags")?;
            let msg_id = msg_id(reader)?;
            Packet::Unsubscribe { msg_id, filter: Filter::decode(flags, reader)? }
        }
        _ => Packet::UnsubAck { msg_id: msg_id(reader)? },
    })
}

fn code(reader: &mut Reader<'_>) -> Result<Code, Error> {
    reader.byte("the return code").map(Code)
}

fn topic_id(reader: &mut Reader<'_>) -> Result<u16, Error> {
    reader.u16("the topic id")
}

fn msg_id(reader: &mut Reader<'_>) -> Result<u16, Error> {
    reader.u16("the msg id")
}

/// Flags and a topic, or neither (MQTT-SN 1.2 §5.4.7).
fn will_topic<'a>(reader: &mut Reader<'a>) -> Result<Option<WillTopic<'a>>, Error> {
    if reader.is_empty() {
        return Ok(None);
    }
    let flags = reader.byte("the flags")?;
    let topic = reader.text("topic of a will that is no UTF-8")?;
    Ok(Some(WillTopic { topic, qos: Qos::of_bits(flags), retain: flags & flag::RETAIN != 0 }))
}
