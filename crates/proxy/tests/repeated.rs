//! Messages that repeat, through sockets and threads: they go as deltas, come back byte for byte,
//! and one client's are never encoded against another's.

#![allow(clippy::unwrap_used, clippy::expect_used)] // Helpers of tests fail as tests do.

mod common;

use std::net::SocketAddr;

use common::origin::Origin;
use common::{Answer, pair, raw, send};

/// So slow that bytes matter.
const SETTINGS: &str = "admin = '127.0.0.1:0'\nrate_cap = '64 kbit/s'\n";

fn status(at: u32) -> Vec<u8> {
    let noise = at.wrapping_mul(2_654_435_761);
    let profiles: String = (0..12)
        .map(|profile| {
            format!(
                "<tt:Profile token='profile_{profile}'><tt:Name>main {profile}</tt:Name><tt:X>\
                 0.{}</tt:X><tt:Y>0.{}</tt:Y></tt:Profile>",
                noise.rotate_left(profile) % 9973,
                noise.rotate_right(profile) % 9949
            )
        })
        .collect();
    format!(
        "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope' \
         xmlns:tt='http://www.onvif.org/ver10/schema'><s:Header><MessageID>{noise:08x}</MessageID>\
         </s:Header><s:Body><GetStatusResponse>{profiles}</GetStatusResponse></s:Body></s:Envelope>"
    )
    .into_bytes()
}

/// How often a side took an encoding.
async fn chosen(admin: SocketAddr, encoding: &str) -> u32 {
    let ask = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = Answer::parse(&raw(admin, ask).await.0);
    let text = String::from_utf8(answer.body).unwrap();
    let name = format!("longwire_encodings_chosen_total{{encoding=\"{encoding}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |count| count.trim().parse().unwrap())
}

#[tokio::test]
async fn what_repeats_crosses_as_deltas_each_client_for_itself() {
    let origin = Origin::start().await;
    let (edge, gateway) = pair(SETTINGS, SETTINGS).await;
    let both = [edge.admin.unwrap(), gateway.admin.unwrap()];
    let ask = async |at: u32, client: &str| {
        let fields = format!("Content-Type: text/xml\r\nAuthorization: {client}\r\n");
        let body = status(at);
        let echo = send(edge.address, "POST", &origin.url("/echo"), &fields, &body).await;
        assert!(echo.body == body, "message {at}");
    };
    for at in 0..20 {
        ask(at, "alice").await;
    }
    let mut before = [0; 2];
    for (admin, before) in both.into_iter().zip(&mut before) {
        *before = chosen(admin, "delta").await;
        assert!(*before >= 10, "{before} of 20");
    }
    ask(30, "bob").await;
    for (admin, before) in both.into_iter().zip(before) {
        assert_eq!(chosen(admin, "delta").await, before, "another's message");
    }
    ask(31, "alice").await;
    for (admin, before) in both.into_iter().zip(before) {
        assert!(chosen(admin, "delta").await > before);
    }
}
