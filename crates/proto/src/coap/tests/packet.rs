use proptest::prelude::*;

use super::bytes;
use crate::Error;
use crate::coap::option::{self, TABLE, is_critical, is_no_cache_key, is_unsafe};
use crate::coap::{Block, Code, Datagram, Header, Kind, Token, Uint, Writer};

fn write(header: &Header, options: &[(u16, Vec<u8>)], payload: &[u8]) -> Result<Vec<u8>, Error> {
    let mut room = vec![0; 0x2_0000];
    let mut writer = Writer::new(&mut room, header);
    for (number, value) in options {
        writer.option(*number, value)?;
    }
    writer.payload(payload)?;
    let len = writer.finish()?;
    room.truncate(len);
    Ok(room)
}

/// RFC 7252 appendix A: figures 16 to 22 as bytes.
#[test]
fn examples_of_the_rfc_are_read_and_written() {
    use Kind::{Acknowledgement as Ack, Confirmable as Con, NonConfirmable as Non};
    let path = (option::URI_PATH, b"temperature".to_vec());
    let value = b"22.3 C".to_vec();
    let examples = [
        ("40017d34 bb 74656d7065726174757265", Con, Code::GET, 0x7d34, "", vec![path.clone()], ""),
        ("60457d34 ff 32322e332043", Ack, Code::CONTENT, 0x7d34, "", vec![], "22.3 C"),
        ("41017d35 20 bb 74656d7065726174757265", Con, Code::GET, 0x7d35, "20", vec![path], ""),
        ("61457d35 20 ff 32322e332043", Ack, Code::CONTENT, 0x7d35, "20", vec![], "22.3 C"),
        ("60007d38", Ack, Code::EMPTY, 0x7d38, "", vec![], ""),
        ("4145ad7b 53 ff 32322e332043", Con, Code::CONTENT, 0xad7b, "53", vec![], "22.3 C"),
        ("51457d40 75 ff 32322e332043", Non, Code::CONTENT, 0x7d40, "75", vec![], "22.3 C"),
    ];
    for (hex, kind, code, mid, token, options, payload) in examples {
        let token = Token::new(&bytes(token)).unwrap();
        let wire = bytes(hex);
        let datagram = Datagram::decode(&wire).unwrap();
        assert_eq!((datagram.kind, datagram.mid), (kind, mid), "{hex}");
        assert_eq!((datagram.message.code, datagram.message.token), (code, token), "{hex}");
        let read: Vec<_> = datagram.message.options.map(|(n, v)| (n, v.to_vec())).collect();
        assert_eq!((read, datagram.message.payload), (options.clone(), payload.as_bytes()));
        let header = Header { kind, code, mid, token };
        assert_eq!(write(&header, &options, payload.as_bytes()).unwrap(), wire, "{hex}");
    }
    assert_eq!(value, b"22.3 C");
}

#[test]
fn what_breaks_the_format_is_refused() {
    for (hex, why) in [
        ("", "empty"),
        ("400100", "short header"),
        ("00010000", "version 0"),
        ("80010000", "version 2"),
        ("49010000 000000000000000000", "token of nine"),
        ("42010000 00", "token cut"),
        ("40010000 ff", "marker without payload"),
        ("41000000 20", "empty message with token"),
        ("40000000 ff00", "empty message with payload"),
        ("40010000 f0", "delta 15"),
        ("40010000 0f", "length 15"),
        ("40010000 d0", "extended delta cut"),
        ("40010000 e001", "extended delta cut"),
        ("40010000 0d", "extended length cut"),
        ("40010000 b3 6162", "value cut"),
        ("40010000 e0fff0 e0fff0", "number over 65,535"),
    ] {
        assert!(Datagram::decode(&bytes(hex)).is_err(), "{why}");
    }
    assert_eq!(Datagram::peek(&bytes("41000102 20")), Some((Kind::Confirmable, 0x0102)));
    assert_eq!(Datagram::peek(&bytes("80010000")), None);
    assert_eq!(Datagram::peek(&bytes("4001")), None);
}

#[test]
fn a_writer_refuses_disorder_and_says_what_room_it_needs() {
    let header = Header { kind: Kind::Confirmable, code: Code::GET, mid: 1, token: Token::EMPTY };
    let mut room = [0; 8];
    let mut writer = Writer::new(&mut room, &header);
    writer.option(option::URI_PATH, b"a").unwrap();
    let disorder = Error::Caller { what: "options out of order" };
    assert_eq!(writer.option(option::URI_HOST, b"h"), Err(disorder));
    writer.option(option::URI_PATH, &[7; 300]).unwrap();
    writer.payload(b"x").unwrap();
    assert!(writer.option(option::SIZE1, b"").is_err() && writer.payload(b"y").is_err());
    assert_eq!(writer.len(), 4 + 2 + 3 + 300 + 2);
    let needs = Error::Limit { what: "encoded message in bytes", value: 311, limit: 8 };
    assert_eq!(writer.finish(), Err(needs));
}

/// The columns of RFC 7252 §5.10, table 4, and of the documents that added to it.
#[test]
fn numbers_say_the_class_of_an_option() {
    assert!(TABLE.windows(2).all(|rows| rows[0].number < rows[1].number));
    let numbers = |is: fn(u16) -> bool| -> Vec<u16> {
        TABLE.iter().map(|row| row.number).filter(|number| is(*number)).collect()
    };
    assert_eq!(numbers(is_critical), [1, 3, 5, 7, 9, 11, 15, 17, 19, 23, 27, 31, 35, 39]);
    assert_eq!(numbers(is_unsafe), [3, 6, 7, 11, 14, 15, 19, 23, 27, 31, 35, 39, 258]);
    assert_eq!(numbers(|number| !is_unsafe(number) && is_no_cache_key(number)), [28, 60, 252]);
    let repeatable: Vec<u16> =
        TABLE.iter().filter(|row| row.is_repeatable).map(|row| row.number).collect();
    assert_eq!(repeatable, [1, 4, 8, 11, 15, 20, 31, 292]);
}

#[test]
fn critical_options_that_are_unknown_long_or_too_many_are_found() {
    let header = Header { kind: Kind::Confirmable, code: Code::GET, mid: 1, token: Token::EMPTY };
    let find = |options: &[(u16, Vec<u8>)]| {
        let wire = write(&header, options, b"").unwrap();
        let known = [option::URI_HOST, option::URI_PATH, option::ACCEPT];
        option::find_bad_critical(Datagram::decode(&wire).unwrap().message.options, &known)
    };
    assert_eq!(find(&[(11, vec![1]), (11, vec![2]), (17, vec![3])]), None);
    assert_eq!(find(&[(4, vec![0; 20]), (2048, vec![])]), None);
    assert_eq!(find(&[(11, vec![]), (2049, vec![])]), Some(2049));
    assert_eq!(find(&[(3, vec![])]), Some(3));
    assert_eq!(find(&[(17, vec![1]), (17, vec![1])]), Some(17));
    assert_eq!(find(&[(17, vec![1; 3])]), Some(17));
    assert_eq!(find(&[(11, vec![0; 256])]), Some(11));
}

#[test]
fn codes_have_their_names() {
    assert_eq!(Code::CONTENT.to_string(), "2.05");
    assert_eq!(Code::HOP_LIMIT_REACHED.to_string(), "5.08");
    assert_eq!(Code::IPATCH.name(), Some("iPATCH"));
    assert_eq!(Code::new(4, 30).name(), Some("Client Error"));
    assert_eq!(Code::new(0, 9).name(), None);
    assert_eq!(Code(0x7f), Code::new(3, 31));
    assert!(Code::new(0, 31).is_request() && !Code::EMPTY.is_request());
}

/// RFC 8768 §3.
#[test]
fn each_hop_takes_one_of_the_limit() {
    assert_eq!(option::next_hop(None), Ok(16));
    assert_eq!(option::next_hop(Some(&[16])), Ok(15));
    assert_eq!(option::next_hop(Some(&[1])), Err(Code::HOP_LIMIT_REACHED));
    assert_eq!(option::next_hop(Some(&[0])), Err(Code::BAD_REQUEST));
    assert_eq!(option::next_hop(Some(&[1, 0])), Err(Code::BAD_REQUEST));
}

/// RFC 7959 §3: the values that its examples show as NUM/M/size.
#[test]
fn block_values_are_those_of_the_rfc() {
    for (value, num, more, size) in [
        (&[0x0e][..], 0, true, 1024),
        (&[0x02], 0, false, 64),
        (&[0x0b], 0, true, 128),
        (&[0x1b], 1, true, 128),
        (&[0x23], 2, false, 128),
        (&[0x3a], 3, true, 64),
        (&[0x52], 5, false, 64),
        (&[0xff, 0xff, 0xfe], 0xf_ffff, true, 1024),
    ] {
        let block = Block::decode(value, false).unwrap();
        assert_eq!((block.num, block.more, block.size_bytes()), (num, more, size));
        assert_eq!(block.encode().unwrap().as_slice(), value);
    }
    assert!(Block::decode(&[0x0f], false).is_err());
    assert_eq!(Block::decode(&[0x0f], true).unwrap().size_bytes(), 1024);
    assert!(Block::decode(&[1, 0, 0, 0], true).is_err());
    assert_eq!(Block::decode(&[], false).unwrap(), Block { num: 0, more: false, szx: 0 });
}

#[test]
fn blocks_change_their_size_where_one_begins() {
    let block = Block { num: 3, more: true, szx: 3 };
    assert_eq!(block.resized(2), Some(Block { num: 6, more: true, szx: 2 }));
    assert_eq!(block.resized(4), None);
    assert_eq!(Block { num: 0xf_ffff, more: true, szx: 6 }.resized(0), None);
    assert!(block.is_length(128) && !block.is_length(127) && !block.is_length(129));
    let last = Block { more: false, ..block };
    assert!(last.is_length(0) && last.is_length(128) && !last.is_length(129));
    let bert = Block { num: 0, more: true, szx: 7 };
    assert!(bert.is_length(3072) && !bert.is_length(1000) && !bert.is_length(0));
    assert_eq!([15, 16, 1023, 1024, 9000].map(Block::szx_for), [0, 0, 5, 6, 6]);
}

proptest! {
    #[test]
    fn any_message_comes_back(
        kind in 0_usize..4,
        code in 1_u8..=255,
        mid: u16,
        token in proptest::collection::vec(any::<u8>(), 0..=8),
        mut options in proptest::collection::vec(
            (any::<u16>(), proptest::collection::vec(any::<u8>(), 0..400)), 0..12),
        payload in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        options.sort_by_key(|(number, _)| *number);
        let kinds =
            [Kind::Confirmable, Kind::NonConfirmable, Kind::Acknowledgement, Kind::Reset];
        let token = Token::new(&token).unwrap();
        let header = Header { kind: kinds[kind], code: Code(code), mid, token };
        let wire = write(&header, &options, &payload).unwrap();
        let read = Datagram::decode(&wire).unwrap();
        prop_assert_eq!((read.kind, read.mid), (header.kind, mid));
        prop_assert_eq!((read.message.code, read.message.token), (Code(code), token));
        let back: Vec<_> = read.message.options.map(|(n, v)| (n, v.to_vec())).collect();
        prop_assert_eq!(back, options);
        prop_assert_eq!(read.message.payload, payload);
    }

    /// What is read of any bytes is written as something that says the same.
    #[test]
    fn any_bytes_are_read_or_refused(mut wire in proptest::collection::vec(any::<u8>(), 0..96)) {
        if let Some(first) = wire.first_mut() {
            *first = 0x40 | *first & 0x33;
        }
        if let Ok(read) = Datagram::decode(&wire) {
            let options: Vec<_> = read.message.options.map(|(n, v)| (n, v.to_vec())).collect();
            let (code, token) = (read.message.code, read.message.token);
            let header = Header { kind: read.kind, code, mid: read.mid, token };
            let again = write(&header, &options, read.message.payload).unwrap();
            let same = Datagram::decode(&again).unwrap();
            prop_assert!(same.message.options.eq(read.message.options));
            prop_assert_eq!(same.message.payload, read.message.payload);
        }
    }

    #[test]
    fn numbers_come_back(value: u32) {
        prop_assert_eq!(option::uint(Uint::new(value).as_slice()), Some(value));
    }
}
