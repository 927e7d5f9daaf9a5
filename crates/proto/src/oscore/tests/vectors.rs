//! The test vectors of RFC 8613 appendix C.

use super::super::{
    Algorithm, CoapMessage, Context, Endpoint, OscoreOption, Parameters, Refusal, Replay,
    ResponseIv, SenderSequence, Verified,
    context::info,
    message::{Direction, split},
    option::aad,
    plaintext::{decode_body, encode_body},
};
use super::hex;

const SECRET: &str = "0102030405060708090a0b0c0d0e0f10";
const SALT: &str = "9e7ca92223786340";
const ID_CONTEXT: &str = "37cbf3210017a2d3";

/// A context of the appendix: salt, name of this end and of the other, ID Context.
fn context(salt: &str, sender: &str, recipient: &str, id_context: Option<&str>) -> Context {
    Context::derive(&Parameters {
        algorithm: Algorithm::AesCcm16_64_128,
        master_secret: &hex(SECRET),
        master_salt: &hex(salt),
        sender_id: &hex(sender),
        recipient_id: &hex(recipient),
        id_context: id_context.map(hex).as_deref(),
    })
    .unwrap()
}

/// What one of C.1 to C.3 derives for the client; the server has the same the other way round.
struct Derived {
    salt: &'static str,
    client: &'static str,
    id_context: Option<&'static str>,
    /// Of client's key, server's key and Common IV.
    infos: [&'static str; 3],
    client_key: &'static str,
    server_key: &'static str,
    common_iv: &'static str,
    /// Of client and server for a Partial IV of 0.
    nonces: [&'static str; 2],
}

const DERIVED: [Derived; 3] = [
    Derived {
        salt: SALT,
        client: "",
        id_context: None,
        infos: ["8540f60a634b657910", "854101f60a634b657910", "8540f60a6249560d"],
        client_key: "f0910ed7295e6ad4b54fc793154302ff",
        server_key: "ffb14e093c94c9cac9471648b4f98710",
        common_iv: "4622d4dd6d944168eefb54987c",
        nonces: ["4622d4dd6d944168eefb54987c", "4722d4dd6d944169eefb54987c"],
    },
    Derived {
        salt: "",
        client: "00",
        id_context: None,
        infos: ["854100f60a634b657910", "854101f60a634b657910", "8540f60a6249560d"],
        client_key: "321b26943253c7ffb6003b0b64d74041",
        server_key: "e57b5635815177cd679ab4bcec9d7dda",
        common_iv: "be35ae297d2dace910c52e99f9",
        nonces: ["bf35ae297d2dace910c52e99f9", "bf35ae297d2dace810c52e99f9"],
    },
    Derived {
        salt: SALT,
        client: "",
        id_context: Some(ID_CONTEXT),
        infos: [
            "85404837cbf3210017a2d30a634b657910",
            "8541014837cbf3210017a2d30a634b657910",
            "85404837cbf3210017a2d30a6249560d",
        ],
        client_key: "af2a1300a5e95788b356336eeecd2b92",
        server_key: "e39a0c7c77b43f03b4b39ab9a268699f",
        common_iv: "2ca58fb85ff1b81c0b7181b85e",
        nonces: ["2ca58fb85ff1b81c0b7181b85e", "2da58fb85ff1b81d0b7181b85e"],
    },
];

#[test]
fn keys_are_those_of_c1_to_c3() {
    for one in DERIVED {
        let id_context = one.id_context.map(hex);
        let [client, server] = [hex(one.client), hex("01")];
        let of = |id: &[u8], kind, len| {
            info(id, id_context.as_deref(), Algorithm::AesCcm16_64_128, kind, len).unwrap()
        };
        let infos = [of(&client, "Key", 16), of(&server, "Key", 16), of(&[], "IV", 13)];
        assert_eq!(infos, one.infos.map(hex));

        let at_client = context(one.salt, one.client, "01", one.id_context);
        let at_server = context(one.salt, "01", one.client, one.id_context);
        let (client_key, server_key) = (hex(one.client_key), hex(one.server_key));
        assert_eq!(at_client.sender_key().bytes(), client_key);
        assert_eq!(at_client.recipient_key().bytes(), server_key);
        assert_eq!(at_server.sender_key().bytes(), server_key);
        assert_eq!(at_server.recipient_key().bytes(), client_key);
        for end in [at_client, at_server] {
            assert_eq!(end.common_iv().bytes(), hex(one.common_iv));
            let nonces = [&client, &server].map(|id| end.nonce(id, 0).bytes().to_vec());
            assert_eq!(nonces, one.nonces.map(hex));
        }
    }
}

#[test]
fn no_secret_is_printed() {
    let shown = format!("{:?}", context(SALT, "", "01", None));
    assert!(shown.contains("Key(..)") && shown.contains("Nonce(..)"), "{shown}");
    // f0, the first byte of the key, as a number of a list.
    assert!(!shown.contains("240"), "{shown}");
}

#[test]
fn options_and_aad_are_those_of_the_rfc() {
    let kid_context = hex(ID_CONTEXT);
    let (piv, kid) = (Some(20), Some(&[][..]));
    for (bytes, option) in [
        ("0914", OscoreOption { partial_iv: piv, kid, kid_context: None }),
        ("091400", OscoreOption { partial_iv: piv, kid: Some(&[0]), kid_context: None }),
        (
            "19140837cbf3210017a2d3",
            OscoreOption { partial_iv: piv, kid, kid_context: Some(&kid_context) },
        ),
        ("", OscoreOption::default()),
        ("0100", OscoreOption { partial_iv: Some(0), ..OscoreOption::default() }),
        // RFC 8613 §6.3, examples 1 to 3.
        ("090525", OscoreOption { partial_iv: Some(5), kid: Some(&[0x25]), kid_context: None }),
        (
            "19050444616c656b",
            OscoreOption { partial_iv: Some(5), kid: Some(b"k"), kid_context: Some(b"Dale") },
        ),
    ] {
        assert_eq!(option.encode().unwrap(), hex(bytes));
        assert_eq!(OscoreOption::decode(&hex(bytes)).unwrap(), option);
    }
    let ccm = Algorithm::AesCcm16_64_128;
    for (kid, number, bytes) in [
        ("", 20, "8368456e63727970743040488501810a40411440"),
        ("00", 20, "8368456e63727970743040498501810a4100411440"),
        // RFC 8613 §5.4.
        ("00", 0x25, "8368456e63727970743040498501810a4100412540"),
    ] {
        assert_eq!(aad(ccm, &hex(kid), number).unwrap(), hex(bytes));
    }
}

/// A client of the appendix whose next number is 20.
fn client(of: &Derived) -> Endpoint {
    let context = context(of.salt, of.client, "01", of.id_context);
    let mut sequence = SenderSequence::restored(20, 10).unwrap();
    sequence.note_stored(30);
    Endpoint::new(context, sequence, Replay::fresh(32).unwrap())
}

fn server(of: &Derived) -> Endpoint {
    let context = context(of.salt, "01", of.client, of.id_context);
    Endpoint::new(context, SenderSequence::unstored(), Replay::fresh(32).unwrap())
}

/// Header with a token of 4 bytes, and the rest as a message.
fn read(packet: &str) -> (Vec<u8>, CoapMessage) {
    let packet = hex(packet);
    let (header, body) = packet.split_at(8);
    (header.to_vec(), decode_body(packet[1], body).unwrap())
}

/// The packet of a message with the header of another one, but for the code.
fn written(header: &[u8], message: &CoapMessage) -> Vec<u8> {
    let mut packet = header.to_vec();
    packet[1] = message.code;
    encode_body(message, &mut packet).unwrap();
    packet
}

#[test]
fn requests_are_those_of_c4_to_c6() {
    for (of, plain, sealed) in [
        (
            &DERIVED[0],
            "44015d1f00003974396c6f63616c686f737483747631",
            "44025d1f00003974396c6f63616c686f7374620914ff612f1092f1776f1c1668b3825e",
        ),
        (
            &DERIVED[1],
            "440171c30000b932396c6f63616c686f737483747631",
            "440271c30000b932396c6f63616c686f737463091400ff4ed339a5a379b0b8bc731fffb0",
        ),
        (
            &DERIVED[2],
            "44012f8eef9bbf7a396c6f63616c686f737483747631",
            "44022f8eef9bbf7a396c6f63616c686f73746b19140837cbf3210017a2d3ff72cd7273fd331ac45cffbe55\
             c3",
        ),
    ] {
        let mut client = client(of);
        client.set_sends_id_context(true);
        let (header, plain) = read(plain);
        assert_eq!(split(Direction::Request, &plain).unwrap().0, hex("01b3747631"));
        let (outer, _) = client.protect_request(&plain).unwrap();
        assert_eq!(written(&header, &outer), hex(sealed));

        let Ok(Verified::New(request, _)) = server(of).verify_request(&read(sealed).1) else {
            panic!("refused")
        };
        assert_eq!(request, plain);
    }
}

#[test]
fn responses_are_those_of_c7_and_c8() {
    let request = read("44025d1f00003974396c6f63616c686f7374620914ff612f1092f1776f1c1668b3825e").1;
    let (header, plain) = read("64455d1f00003974ff48656c6c6f20576f726c6421");
    for (iv, sealed) in [
        (ResponseIv::OfRequest, "64445d1f0000397490ffdbaad1e9a7e7b2a813d3c31524378303cdafae119106"),
        (ResponseIv::Own, "64445d1f00003974920100ff4d4c13669384b67354b2b6175ff4b8658c666a6cf88e"),
    ] {
        let mut server = server(&DERIVED[0]);
        let Ok(Verified::New(_, mut received)) = server.verify_request(&request) else {
            panic!("refused")
        };
        let outer = server.protect_response(&mut received, &plain, iv).unwrap();
        assert_eq!(written(&header, &outer), hex(sealed));

        let mut client = client(&DERIVED[0]);
        let get = CoapMessage::new(1, [], &[]);
        let (_, mut sent) = client.protect_request(&get).unwrap();
        assert_eq!(client.verify_response(&mut sent, &read(sealed).1), Ok(plain.clone()));
        // Only one response is accepted.
        let again = client.verify_response(&mut sent, &read(sealed).1);
        assert_eq!(again, Err(Refusal::Replay));
    }
}
