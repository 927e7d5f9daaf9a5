//! What brokers answer a client of WS-Notification, and post to its consumer, is read or refused;
//! what it says to what it has read is well-formed.
#![no_main]

use std::time::Duration;

use broker::Tree;
use broker::wsn_client::{
    get_messages, read_fault, read_messages, read_pull_point, read_renewed, read_subscribed, renew,
    unsubscribe,
};
use libfuzzer_sys::fuzz_target;

fn enveloped(content: &str, is_12: bool) -> String {
    let soap = if is_12 {
        "http://www.w3.org/2003/05/soap-envelope"
    } else {
        "http://schemas.xmlsoap.org/soap/envelope/"
    };
    format!(
        "<s:Envelope xmlns:s='{soap}' xmlns:n='http://docs.oasis-open.org/wsn/b-2' \
         xmlns:a='http://www.w3.org/2005/08/addressing' xmlns:l='urn:longwire:wsn'>\
         <s:Body>{content}</s:Body></s:Envelope>"
    )
}

fn check(body: &[u8]) {
    let text = std::str::from_utf8(body).expect("it is in UTF-8");
    assert!(Tree::parse(text).is_ok(), "{text}");
}

fuzz_target!(|data: &[u8]| {
    let Some((&how, rest)) = data.split_first() else { return };
    let body = match std::str::from_utf8(rest) {
        Ok(content) if how & 1 == 0 => enveloped(content, how & 2 > 0).into_bytes(),
        _ => rest.to_vec(),
    };
    if let Ok(subscribed) = read_subscribed(&body) {
        check(&renew(&subscribed.reference, Duration::from_secs(60)));
        check(&unsubscribe(&subscribed.reference));
    }
    if let Ok(point) = read_pull_point(&body) {
        check(&get_messages(&point, 5));
    }
    let _ = (read_renewed(&body), read_fault(&body));
    if let Ok(messages) = read_messages(&body) {
        assert!(messages.len() <= 1000);
    }
});
