//! Any bytes as a message of CoAP over each transport, and any text as a URI of it: what is read
//! is written as something that says the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::coap::transfer::q_block::missing;
use proto::coap::uri::{Uri, Via};
use proto::coap::{Block, Datagram, Header, Message, Writer, framed, option};

fn again(message: &Message<'_>, mut writer: Writer<'_>) -> usize {
    for (number, value) in message.options {
        writer.option(number, value).expect("options that were read are in order");
    }
    writer.payload(message.payload).expect("there is one payload");
    writer.finish().expect("the shortest form is no longer")
}

fuzz_target!(|data: &[u8]| {
    let mut room = vec![0; data.len()];
    if let Ok(datagram) = Datagram::decode(data) {
        let Datagram { kind, mid, message } = datagram;
        let header = Header { kind, code: message.code, mid, token: message.token };
        let len = again(&message, Writer::new(&mut room, &header));
        let same = Datagram::decode(&room[..len]).expect("what was written is read");
        assert_eq!(same.message.payload, message.payload);
        assert!(same.message.options.eq(message.options));
        let _ = option::find_bad_critical(message.options, &[option::URI_PATH]);
        for number in [option::BLOCK1, option::BLOCK2, option::Q_BLOCK1, option::Q_BLOCK2] {
            for value in message.options.all(number) {
                if let Ok(block) = Block::decode(value, true) {
                    assert_eq!(
                        Block::decode(block.encode().expect("20 bits").as_slice(), true),
                        Ok(block)
                    );
                }
            }
        }
    }
    if let Ok(Some((message, used))) = framed::decode(data, 1152) {
        assert!(used <= data.len());
        let _ = framed::Capabilities::default().observe(&message);
    }
    let _ = framed::decode_websocket(data);
    if let Some(numbers) = missing::decode(data) {
        assert_eq!(missing::decode(&missing::encode(&numbers)), Some(numbers));
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(uri) = Uri::parse(text)
    {
        uri.options(Via::Origin, |_, _| Ok(())).expect("it was checked");
    }
});
