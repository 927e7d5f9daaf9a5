use proptest::prelude::*;

use super::*;
use crate::amqp::types::{Map, Symbol};

fn pair(key: &'static str) -> Map {
    vec![(Value::symbol(key), Value::Uint(300))]
}

fn symbols() -> Vec<Symbol> {
    vec![Symbol::new("one"), Symbol::new("two")]
}

fn error() -> Option<ErrorInfo> {
    let (condition, description) = (condition::STOLEN, Some("words".to_owned()));
    Some(ErrorInfo { condition, description, info: pair("more") })
}

fn opens() -> Vec<Performative> {
    let full = Open {
        container_id: "c".to_owned(),
        hostname: Some("h".to_owned()),
        max_frame_size: 512,
        channel_max: 3,
        idle_time_out_ms: Some(9000),
        outgoing_locales: vec![Symbol::new("en-US")],
        incoming_locales: symbols(),
        offered_capabilities: symbols(),
        desired_capabilities: symbols(),
        properties: pair("product"),
    };
    let begin = Begin {
        remote_channel: Some(0),
        next_outgoing_id: u32::MAX,
        incoming_window: 1,
        outgoing_window: 2,
        handle_max: 3,
        offered_capabilities: symbols(),
        desired_capabilities: symbols(),
        properties: pair("p"),
    };
    vec![
        Performative::Open(Box::new(full)),
        Performative::Open(Box::new(Open::new(""))),
        Performative::Begin(Box::new(begin)),
    ]
}

fn attaches() -> Vec<Performative> {
    let source = Source {
        address: Some(Value::string("a/+/b")),
        durable: Durability::UnsettledState,
        expiry_policy: ExpiryPolicy::Never,
        timeout_s: 60,
        dynamic: true,
        dynamic_node_properties: pair("lifetime-policy"),
        distribution_mode: Some(Symbol::new("copy")),
        filter: vec![(
            Value::symbol("s"),
            Value::described(Value::Ulong(0x0000_468C_0000_0004), Value::string("a = 1")),
        )],
        default_outcome: Some(DeliveryState::Released),
        outcomes: DeliveryState::symbols(),
        capabilities: symbols(),
    };
    let target = Target {
        address: Some(Value::string("x")),
        durable: Durability::Configuration,
        expiry_policy: ExpiryPolicy::LinkDetach,
        timeout_s: 1,
        dynamic: true,
        dynamic_node_properties: pair("d"),
        capabilities: symbols(),
    };
    let mut attach = Attach::new("n", 0, Role::Sender);
    attach.initial_delivery_count = Some(0);
    let plain_attach = attach.clone();
    attach.snd_settle_mode = SenderSettleMode::Settled;
    attach.rcv_settle_mode = ReceiverSettleMode::Second;
    attach.source = Some(source);
    attach.target = Some(TargetKind::Target(Box::new(target)));
    attach.unsettled = vec![(Value::Binary(Bytes::from_static(b"t")), Value::Null)];
    attach.incomplete_unsettled = true;
    attach.max_message_size = Some(1 << 20);
    let mut coordinator = Attach::new("tx", 1, Role::Receiver);
    coordinator.target =
        Some(TargetKind::Coordinator(vec![Symbol::new("amqp:local-transactions")]));
    [plain_attach, attach, coordinator].map(|it| Performative::Attach(Box::new(it))).to_vec()
}

/// Each performative with all of its fields, and with those that it has to have.
fn all() -> Vec<Performative> {
    let flow = Flow {
        next_incoming_id: Some(1),
        incoming_window: 2,
        next_outgoing_id: 3,
        outgoing_window: 4,
        link: Some(LinkFlow {
            handle: 5,
            delivery_count: Some(6),
            link_credit: Some(7),
            available: Some(8),
            drain: true,
        }),
        echo: true,
        properties: pair("f"),
    };
    let transfer = Transfer {
        handle: 1,
        delivery_id: Some(2),
        delivery_tag: Some(Bytes::from_static(b"tag")),
        message_format: Some(0),
        settled: Some(false),
        more: true,
        rcv_settle_mode: Some(ReceiverSettleMode::Second),
        state: Some(DeliveryState::Received { section_number: 1, section_offset: 300 }),
        resume: true,
        aborted: true,
        batchable: true,
    };
    let states = [
        None,
        Some(DeliveryState::Accepted),
        Some(DeliveryState::Rejected(error())),
        Some(DeliveryState::Rejected(None)),
        Some(DeliveryState::Released),
        Some(DeliveryState::Modified {
            delivery_failed: true,
            undeliverable_here: true,
            message_annotations: pair("m"),
        }),
        Some(DeliveryState::Other(Value::described(
            Value::Ulong(0x34),
            Value::List(vec![Value::Binary(Bytes::from_static(b"txn"))]),
        ))),
    ];
    let mut performatives = vec![
        Performative::Flow(Box::new(flow.clone())),
        Performative::Flow(Box::new(Flow { link: None, ..flow })),
        Performative::Transfer(Box::new(transfer)),
        Performative::Transfer(Box::default()),
        Performative::Detach(Detach { handle: 0, closed: true, error: error() }),
        Performative::Detach(Detach { handle: 9, closed: false, error: None }),
        Performative::End(End { error: error() }),
        Performative::Close(Close { error: error() }),
        Performative::Close(Close::default()),
    ];
    performatives.extend(opens());
    performatives.extend(attaches());
    performatives.extend(states.map(|state| {
        Performative::Disposition(Disposition {
            role: Role::Receiver,
            first: 1,
            last: Some(4),
            settled: true,
            state,
            batchable: true,
        })
    }));
    performatives
}

#[test]
fn performatives_come_back() {
    for performative in all() {
        let mut out = Vec::new();
        performative.encode(&mut out);
        let bytes = Bytes::from(out);
        let came = Performative::decode(&bytes);
        assert_eq!(came, Ok((performative.clone(), Bytes::new())), "{bytes:x?}");
        for len in 0..bytes.len() {
            assert!(Performative::decode(&bytes.slice(..len)).is_err(), "{performative:?}");
        }
        let with_more = Bytes::from([&bytes[..], b"more"].concat());
        let is_transfer = matches!(performative, Performative::Transfer(_));
        let read = Performative::decode(&with_more);
        assert_eq!(read.is_ok_and(|(_, payload)| payload == "more"), is_transfer);
    }
}

/// As figure 2.16 of AMQP 1.0 Part 2 has it, and with the descriptor's name.
#[test]
fn the_least_open_is_read_in_each_encoding() {
    let expected = Performative::Open(Box::new(Open::new("x")));
    for bytes in [
        &b"\x00\x53\x10\xc0\x04\x01\xa1\x01x"[..],
        b"\x00\x80\0\0\0\0\0\0\0\x10\xd0\0\0\0\x07\0\0\0\x01\xa1\x01x",
        b"\x00\xa3\x0eamqp:open:list\xc0\x05\x02\xa1\x01x\x40",
    ] {
        let came = Performative::decode(&Bytes::copy_from_slice(bytes));
        assert_eq!(came, Ok((expected.clone(), Bytes::new())), "{bytes:x?}");
    }
}

#[test]
fn what_breaks_the_rules_is_refused() {
    for bytes in [
        &b"\x00\x53\x10\x45"[..],                     // open without a container
        b"\x00\x53\x10\xc0\x03\x01\x52\x01",          // whose name is a number
        b"\x00\x53\x19\x45",                          // no such performative
        b"\x00\xa3\x01x\x45",                         // nor one of such a name
        b"\x53\x10\x45",                              // no descriptor
        b"\x00\x53\x17\xc0\x02\x01\x41",              // an error that is none
        b"\x00\x53\x17\xc0\x03\x02\x40\x40",          // two fields where there is one
        b"\x00\x53\x12\xc0\x06\x03\xa1\x01x\x43\x42", // a sender without a count
        b"\x00\x53\x12\xc0\x08\x04\xa1\x01x\x43\x41\x50\x03", // a mode that there is not
    ] {
        assert!(Performative::decode(&Bytes::copy_from_slice(bytes)).is_err(), "{bytes:x?}");
    }
    let transfer = Transfer { delivery_tag: Some(vec![1; 33].into()), ..Transfer::default() };
    let mut out = Vec::new();
    Performative::Transfer(Box::new(transfer)).encode(&mut out);
    assert!(Performative::decode(&out.into()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_are_read_or_refused(
        which in 0_usize..22,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let all = all();
        let mut out = Vec::new();
        all[which % all.len()].encode(&mut out);
        for (at, byte) in changes {
            let at = at.index(out.len());
            out[at] = byte;
        }
        if let Ok((performative, payload)) = Performative::decode(&out.into()) {
            let mut again = Vec::new();
            performative.encode(&mut again);
            again.extend_from_slice(&payload);
            // What is not a number is not the same as itself.
            let (same, _) = Performative::decode(&again.clone().into()).unwrap();
            let mut third = Vec::new();
            same.encode(&mut third);
            third.extend_from_slice(&payload);
            prop_assert_eq!(again, third);
        }
    }
}
