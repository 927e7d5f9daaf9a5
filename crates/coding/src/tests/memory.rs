//! Memory of encoders, and the window that a peer's credit leaves.

use decide::estimate::Transport;
use decide::models::Subject;

use super::*;

/// A side that sends requests, and does what its machine asks for.
struct Side {
    coding: Coding,
    contexts: Contexts,
    now: Duration,
    number: u64,
    /// Probes do not end.
    probes_wait: bool,
    ordered: Vec<Job>,
}

impl Side {
    fn new(config: Config) -> Self {
        let mut coding = Coding::new(config);
        let abilities = abilities(&coding);
        let up =
            Input::Up { path: PATH, peer: "p".to_owned(), kind: "stream", instance: 9, abilities };
        coding.handle_input(ms(0), up);
        let (now, ordered) = (ms(0), Vec::new());
        let contexts = Contexts::default();
        let mut side = Self { coding, contexts, now, number: 0, probes_wait: false, ordered };
        side.tell(Input::Wake);
        side
    }

    fn tell(&mut self, input: Input) {
        let mut todo = VecDeque::from([input]);
        while let Some(input) = todo.pop_front() {
            self.coding.handle_input(self.now, input);
            while let Some(output) = self.coding.poll_output() {
                match output {
                    Output::Job(job) => {
                        if !self.probes_wait || !matches!(job, Job::Try(_)) {
                            todo.push_back(run(&job, &mut self.contexts));
                        }
                        self.ordered.push(job);
                    }
                    Output::Settled { exchange, .. } => todo.push_back(Input::Led { exchange }),
                    Output::Block { exchange, end, .. } => {
                        let departed = Departed { body: true, block: true, more: false, end };
                        todo.push_back(Input::Departed { exchange, departed });
                    }
                    _ => {}
                }
            }
        }
    }

    /// A message begins, with the first of its body.
    fn begins(&mut self, body: Vec<u8>) -> ExchangeId {
        self.now += ms(50);
        self.number += 1;
        let exchange = ExchangeId { instance: 1, number: self.number };
        let media = Some("text/xml".to_owned());
        self.tell(Input::Open { exchange, about: About::default() });
        self.tell(Input::Attach { exchange, path: PATH });
        self.tell(Input::Message { exchange, message: Message { media, ..Message::default() } });
        self.coding.handle_input(self.now, Input::Body { exchange, bytes: body.into() });
        exchange
    }

    fn sends(&mut self, body: Vec<u8>) {
        let exchange = self.begins(body);
        self.tell(Input::End { exchange, trailers: false });
        self.tell(Input::Forget { exchange });
    }
}

fn xml(rows: u32) -> Vec<u8> {
    let row = |at: u32| format!("<row><key>{at}</key><name>Customer#{:09}</name></row>\n", at * 7);
    (0..rows).map(row).collect::<String>().into_bytes()
}

/// A window of 2,000 segments is of no use where the peer takes 128 KiB before it was heard; when
/// that is nearly used up it gives more.
#[test]
fn credit_bounds_the_window_until_a_message_leaves() {
    let mut side = Side::new(config(EDGE));
    let transport =
        Transport { window_segments: 2000, segment_bytes: 1448, ..Transport::default() };
    side.tell(Input::Transport { path: PATH, transport });
    let exchange = side.begins(xml(3000));
    let window = |side: &mut Side| {
        side.coding.sender(exchange).unwrap().known().expected_path().0.start_window
    };
    assert!((window(&mut side) - 131_072.0 / 1448.0).abs() < 0.1);
    side.tell(Input::Wake);
    assert_eq!((window(&mut side), side.ordered.is_empty()), (2000.0, false));
}

/// Those that only teach leave what is sent the memory that it had without them.
#[test]
fn probes_take_no_memory_from_what_is_sent() {
    let fits = |side: &mut Side| {
        let exchange = ExchangeId { instance: 1, number: 1000 };
        side.tell(Input::Open { exchange, about: About::default() });
        side.tell(Input::Attach { exchange, path: PATH });
        let subject = Subject { peer: 0, class: 1, bytes: 1e6, head_share: 0.3 };
        let fits = side.coding.sender(exchange).unwrap().known().fits(&subject, None);
        side.tell(Input::Forget { exchange });
        format!("{fits:?}")
    };
    let config = || Config { codec_bytes: 12 << 20, ..config(EDGE) };
    let before = fits(&mut Side::new(config()));
    let mut side = Side::new(config());
    side.probes_wait = true;
    (0..200).for_each(|_| side.sends(xml(30_000)));
    let held = side.coding.codec_bytes();
    assert!(held > 1 << 20, "{held} bytes for probes");
    assert_eq!(fits(&mut side), before);
}

/// What was tried before takes no memory from others while the body goes on.
#[test]
fn what_was_only_tried_keeps_no_memory() {
    let encoding = Encoding::of("zstd:3").unwrap();
    let mut side = Side::new(Config { encoding, ..config(EDGE) });
    let exchange = side.begins(xml(70_000));
    side.coding.sender(exchange).unwrap().reserve_encoder(10 << 20);
    assert_eq!(side.coding.codec_bytes(), 10 << 20);
    side.tell(Input::Wake);
    let options = side.ordered[0].setup().unwrap().options;
    let takes = options.codec.encoder_bytes(options);
    assert_eq!(side.coding.codec_bytes(), takes);
}

#[test]
fn a_byte_that_waits_does_not_hold_the_buffer_it_came_in() {
    let buffer = Bytes::from(vec![1; 65_536]);
    let mut receiving = exchange::receiving::Receiving::default();
    let bytes = buffer.slice(..1);
    let piece = Piece { block_end: Some(1), uncoded: true, anew: false, end: false, bytes };
    receiving.push(&piece).unwrap();
    drop(piece);
    assert_eq!(receiving.held_bytes(), 1);
    assert!(buffer.is_unique());
}
