// flat table: of all methods of AMQP 0.9.1 and what RabbitMQ added to them.
//! Methods (AMQP 0.9.1 §4.2.4, and §1.4 to §1.9 of its reference of classes).

use super::table::Table;
use super::wire::{Field, Reader, Writer};
use crate::Error;

/// Number of the class `connection`.
pub const CONNECTION: u16 = 10;
/// Number of the class `channel`.
pub const CHANNEL: u16 = 20;
/// Number of the class `exchange`.
pub const EXCHANGE: u16 = 40;
/// Number of the class `queue`.
pub const QUEUE: u16 = 50;
/// Number of the class `basic`.
pub const BASIC: u16 = 60;
/// Number of the class `confirm`, an extension.
pub const CONFIRM: u16 = 85;
/// Number of the class `tx`.
pub const TX: u16 = 90;

/// Class and method of a method's payload.
pub fn ids_of(payload: &[u8]) -> Result<(u16, u16), Error> {
    let mut reader = Reader::new(payload);
    Ok((u16::take(&mut reader)?, u16::take(&mut reader)?))
}

/// Each line: name, class, method, reserved arguments before the others, arguments, reserved ones
/// behind. Reserved arguments are skipped, and written as nothing.
macro_rules! methods {
    ($($name:ident $class:literal $id:literal
        [$($before:ty)*] { $($field:ident: $type:ty),* } [$($after:ty)*])*) => {
        /// A method, whose arguments have the names of the standard.
        // The standard says what each means; the names are its own.
        #[allow(missing_docs)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Method<'a> {
            $($name { $($field: $type),* },)*
        }

        impl<'a> Method<'a> {
            /// Class and method of each.
            pub const ALL: &'static [(u16, u16)] = &[$(($class, $id)),*];

            /// Class and method.
            #[must_use]
            pub fn ids(&self) -> (u16, u16) {
                match self {
                    $(Self::$name { .. } => ($class, $id),)*
                }
            }

            /// Reads the payload of a method frame, all of it.
            pub fn decode(payload: &'a [u8]) -> Result<Self, Error> {
                let mut reader = Reader::new(payload);
                let class = u16::take(&mut reader)?;
                let id = u16::take(&mut reader)?;
                let method = match (class, id) {
                    $(($class, $id) => {
                        $(<$before>::take(&mut reader)?;)*
                        let method = Self::$name { $($field: <$type>::take(&mut reader)?),* };
                        $(<$after>::take(&mut reader)?;)*
                        method
                    })*
                    _ => {
                        let value = u64::from(class) << 16 | u64::from(id);
                        return Err(Error::Peer { what: "method that AMQP has not", value });
                    }
                };
                reader.finish()?;
                Ok(method)
            }

            /// Appends the payload of a method frame. A string that is too long is the caller's
            /// fault.
            pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), Error> {
                let mut writer = Writer::new(out);
                let (class, id) = self.ids();
                class.put(&mut writer)?;
                id.put(&mut writer)?;
                match self {
                    $(Self::$name { $($field),* } => {
                        $(<$before>::default().put(&mut writer)?;)*
                        $($field.put(&mut writer)?;)*
                        $(<$after>::default().put(&mut writer)?;)*
                    })*
                }
                Ok(())
            }
        }
    };
}

methods! {
    ConnectionStart 10 10 [] { version_major: u8, version_minor: u8, server_properties: Table<'a>,
        mechanisms: &'a [u8], locales: &'a [u8] } []
    ConnectionStartOk 10 11 [] { client_properties: Table<'a>, mechanism: &'a str,
        response: &'a [u8], locale: &'a str } []
    ConnectionSecure 10 20 [] { challenge: &'a [u8] } []
    ConnectionSecureOk 10 21 [] { response: &'a [u8] } []
    ConnectionTune 10 30 [] { channel_max: u16, frame_max: u32, heartbeat: u16 } []
    ConnectionTuneOk 10 31 [] { channel_max: u16, frame_max: u32, heartbeat: u16 } []
    ConnectionOpen 10 40 [] { virtual_host: &'a str } [&'a str bool]
    ConnectionOpenOk 10 41 [] {} [&'a str]
    ConnectionClose 10 50 [] { reply_code: u16, reply_text: &'a str, class_id: u16,
        method_id: u16 } []
    ConnectionCloseOk 10 51 [] {} []
    ConnectionBlocked 10 60 [] { reason: &'a str } []
    ConnectionUnblocked 10 61 [] {} []
    ConnectionUpdateSecret 10 70 [] { new_secret: &'a [u8], reason: &'a str } []
    ConnectionUpdateSecretOk 10 71 [] {} []

    ChannelOpen 20 10 [&'a str] {} []
    ChannelOpenOk 20 11 [&'a [u8]] {} []
    ChannelFlow 20 20 [] { active: bool } []
    ChannelFlowOk 20 21 [] { active: bool } []
    ChannelClose 20 40 [] { reply_code: u16, reply_text: &'a str, class_id: u16,
        method_id: u16 } []
    ChannelCloseOk 20 41 [] {} []

    ExchangeDeclare 40 10 [u16] { exchange: &'a str, kind: &'a str, passive: bool, durable: bool,
        auto_delete: bool, internal: bool, no_wait: bool, arguments: Table<'a> } []
    ExchangeDeclareOk 40 11 [] {} []
    ExchangeDelete 40 20 [u16] { exchange: &'a str, if_unused: bool, no_wait: bool } []
    ExchangeDeleteOk 40 21 [] {} []
    ExchangeBind 40 30 [u16] { destination: &'a str, source: &'a str, routing_key: &'a str,
        no_wait: bool, arguments: Table<'a> } []
    ExchangeBindOk 40 31 [] {} []
    ExchangeUnbind 40 40 [u16] { destination: &'a str, source: &'a str, routing_key: &'a str,
        no_wait: bool, arguments: Table<'a> } []
    ExchangeUnbindOk 40 51 [] {} []

    QueueDeclare 50 10 [u16] { queue: &'a str, passive: bool, durable: bool, exclusive: bool,
        auto_delete: bool, no_wait: bool, arguments: Table<'a> } []
    QueueDeclareOk 50 11 [] { queue: &'a str, message_count: u32, consumer_count: u32 } []
    QueueBind 50 20 [u16] { queue: &'a str, exchange: &'a str, routing_key: &'a str,
        no_wait: bool, arguments: Table<'a> } []
    QueueBindOk 50 21 [] {} []
    QueuePurge 50 30 [u16] { queue: &'a str, no_wait: bool } []
    QueuePurgeOk 50 31 [] { message_count: u32 } []
    QueueDelete 50 40 [u16] { queue: &'a str, if_unused: bool, if_empty: bool, no_wait: bool } []
    QueueDeleteOk 50 41 [] { message_count: u32 } []
    QueueUnbind 50 50 [u16] { queue: &'a str, exchange: &'a str, routing_key: &'a str,
        arguments: Table<'a> } []
    QueueUnbindOk 50 51 [] {} []

    BasicQos 60 10 [] { prefetch_size: u32, prefetch_count: u16, global: bool } []
    BasicQosOk 60 11 [] {} []
    BasicConsume 60 20 [u16] { queue: &'a str, consumer_tag: &'a str, no_local: bool,
        no_ack: bool, exclusive: bool, no_wait: bool, arguments: Table<'a> } []
    BasicConsumeOk 60 21 [] { consumer_tag: &'a str } []
    BasicCancel 60 30 [] { consumer_tag: &'a str, no_wait: bool } []
    BasicCancelOk 60 31 [] { consumer_tag: &'a str } []
    BasicPublish 60 40 [u16] { exchange: &'a str, routing_key: &'a str, mandatory: bool,
        immediate: bool } []
    BasicReturn 60 50 [] { reply_code: u16, reply_text: &'a str, exchange: &'a str,
        routing_key: &'a str } []
    BasicDeliver 60 60 [] { consumer_tag: &'a str, delivery_tag: u64, redelivered: bool,
        exchange: &'a str, routing_key: &'a str } []
    BasicGet 60 70 [u16] { queue: &'a str, no_ack: bool } []
    BasicGetOk 60 71 [] { delivery_tag: u64, redelivered: bool, exchange: &'a str,
        routing_key: &'a str, message_count: u32 } []
    BasicGetEmpty 60 72 [&'a str] {} []
    BasicAck 60 80 [] { delivery_tag: u64, multiple: bool } []
    BasicReject 60 90 [] { delivery_tag: u64, requeue: bool } []
    BasicRecoverAsync 60 100 [] { requeue: bool } []
    BasicRecover 60 110 [] { requeue: bool } []
    BasicRecoverOk 60 111 [] {} []
    BasicNack 60 120 [] { delivery_tag: u64, multiple: bool, requeue: bool } []

    ConfirmSelect 85 10 [] { no_wait: bool } []
    ConfirmSelectOk 85 11 [] {} []

    TxSelect 90 10 [] {} []
    TxSelectOk 90 11 [] {} []
    TxCommit 90 20 [] {} []
    TxCommitOk 90 21 [] {} []
    TxRollback 90 30 [] {} []
    TxRollbackOk 90 31 [] {} []
}

impl Method<'_> {
    /// Whether a content header and bodies follow it (AMQP 0.9.1 §4.2.6).
    #[must_use]
    pub fn has_content(&self) -> bool {
        matches!(
            self,
            Self::BasicPublish { .. }
                | Self::BasicReturn { .. }
                | Self::BasicDeliver { .. }
                | Self::BasicGetOk { .. }
        )
    }
}
