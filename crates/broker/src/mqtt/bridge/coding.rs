//! Both ends of a connection agree that what follows CONNECT and CONNACK is compressed.

use proto::mqtt::{Id, Properties, Value};

use crate::coded;

/// User property of CONNECT and CONNACK that asks for it and grants it.
const CODING: &str = "lw-coding";

/// Whether the other side compresses, or asks for it.
pub(in crate::mqtt) fn codes(properties: &Properties) -> bool {
    properties.user().any(|property| property == (CODING, coded::NAME))
}

/// Asks for it in a CONNECT, grants it in a CONNACK.
pub(in crate::mqtt) fn say_coding(properties: &mut Properties) {
    let _ = properties.push(Id::USER_PROPERTY, Value::Pair(CODING, coded::NAME));
}
