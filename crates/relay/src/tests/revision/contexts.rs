//! A peer whose blocks begin contexts, or go past theirs, as often as it likes.

use super::*;

/// A peer that begins contexts without end, and one whose body goes on in another.
#[test]
fn contexts_begin_anew_only_so_often() {
    let block = || {
        let mut bytes = Vec::new();
        let options = codec::Options { window_log: 17, ..codec::Options::of("zstd").unwrap() };
        options.encoder().unwrap().encode(b"12345", false, &mut bytes).unwrap();
        bytes
    };
    let (mut relay, mut peer) = gateway();
    let Part::Head(head) = request_frame(5) else { unreachable!() };
    let head = Part::Head(HeadPart { codec: 2, window_log: 17, end: false, ..head });
    peer.sends(&mut relay, ms(0), CARRIER, &[head]);
    let (mut began, mut refused) = (0, None);
    for at in 0..1000 {
        let (block_end, end) = (Some(5), false);
        let data = Data {
            exchange: 5,
            block_end,
            uncoded: false,
            anew: true,
            end,
            padding: None,
            bytes: block().into(),
        };
        let outputs = peer.sends(&mut relay, ms(2), CARRIER, &[Part::Data(data)]);
        for output in &outputs {
            assert!(!matches!(output, Output::Close { .. }), "only the exchange");
            let Output::Job(Job::Decode(job)) = output else { continue };
            began += usize::from(job.first);
            relay.handle_input(ms(2), decoded(job, b"12345", ms(0)));
        }
        if outputs.iter().any(|output| matches!(output, Output::Abort { .. })) {
            refused = Some(at);
            break;
        }
        relay.handle_input(
            ms(2),
            Input::Credit { exchange: ExchangeId { instance: 1, number: 5 }, bytes: 10 },
        );
        peer.takes(&drain(&mut relay));
    }
    assert_eq!((began, refused), (coding::MAX_CONTEXTS, Some(coding::MAX_CONTEXTS)));
    assert_eq!((relay.load().codec_bytes, relay.is_idle()), (0, true));
}

/// A peer that codes every other block of many tiny ones: one context, and memory for one.
#[test]
fn blocks_coded_and_uncoded_alternately_take_one_context() {
    let (mut relay, mut peer) = gateway();
    let Part::Head(head) = request_frame(5) else { unreachable!() };
    let head = Part::Head(HeadPart { codec: 2, window_log: 17, end: false, ..head });
    peer.sends(&mut relay, ms(0), CARRIER, &[head]);
    let exchange = ExchangeId { instance: 1, number: 5 };
    relay.handle_input(ms(1), Input::Credit { exchange, bytes: 1 << 40 });
    drain(&mut relay);
    let options = codec::Options { window_log: 17, ..codec::Options::of("zstd").unwrap() };
    let mut encoder = options.encoder().unwrap();
    let (mut began, mut got, mut most) = (0, 0, 0);
    for at in 0..20_000 {
        let (uncoded, mut bytes) = (at % 2 == 0, b"12345".to_vec());
        if !uncoded {
            bytes.clear();
            encoder.encode(b"12345", false, &mut bytes).unwrap();
        }
        let (block_end, end, bytes) = (Some(5), false, bytes.into());
        let data = Data { exchange: 5, block_end, uncoded, anew: false, end, padding: None, bytes };
        let outputs = peer.sends(&mut relay, ms(2), CARRIER, &[Part::Data(data)]);
        let mut todo = VecDeque::from(outputs);
        while let Some(output) = todo.pop_front() {
            match &output {
                Output::Job(Job::Decode(job)) => {
                    began += usize::from(job.first);
                    relay.handle_input(ms(2), decoded(job, b"12345", ms(0)));
                    todo.extend(drain(&mut relay));
                }
                Output::Data { bytes, .. } => got += bytes.len(),
                _ => {}
            }
            peer.takes(&[output]);
        }
        most = most.max(relay.load().codec_bytes);
    }
    assert_eq!((began, got), (1, 100_000));
    let one = options.codec.decoder_bytes(options);
    assert_eq!(most, one);
}
