//! What a relay is told at its start, and its bounds.

use std::time::Duration;

use proto::stream::Role;

/// Body bytes the local side may hand over ahead of the carrier, per exchange: two blocks.
pub const LOCAL_WINDOW_BYTES: u64 = 128 * 1024;
/// Credit each exchange starts with towards the peer; at least one encoded block.
pub const INITIAL_CREDIT_BYTES: u64 = 128 * 1024;
/// Most credit outstanding on one exchange.
pub(crate) const MAX_CREDIT_BYTES: u64 = 2 << 20;
/// Bytes given to a carrier and not yet taken by the kernel: little, so that what is urgent passes.
pub(crate) const TRANSMIT_WINDOW_BYTES: usize = 16 * 1024;
/// A carrier whose peer does not read, while control frames pile up, is closed at this.
pub(crate) const MAX_BACKLOG_BYTES: usize = 1 << 20;
/// Largest piece of a block while others wait too; alone, a piece fills the transmit window.
pub(crate) const PIECE_BYTES: usize = 2 * 1024;
/// A block closes after this long without input, so that event streams flow.
pub(crate) const BLOCK_PAUSE: Duration = Duration::from_millis(20);
/// Most of an answer kept per exchange for a replay, in bytes of memory.
pub(crate) const RETAINED_EXCHANGE_BYTES: usize = 64 * 1024;
/// Most exchanges that are over and whose outcome is remembered, and most edges known.
pub(crate) const MAX_OUTCOMES: usize = 4096;
/// Most times that a request goes back to wait for a carrier; a gateway that keeps taking requests
/// and breaking is no better than none.
pub(crate) const MAX_RESENDS: u8 = 8;
/// First pause before dialling again; doubles up to [`MAX_DIAL_PAUSE`].
pub(crate) const MIN_DIAL_PAUSE: Duration = Duration::from_millis(250);
/// Longest pause while exchanges wait; ten times that while none does.
pub(crate) const MAX_DIAL_PAUSE: Duration = Duration::from_secs(4);

/// A relay's settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Edge or gateway.
    pub role: Role,
    /// Drawn at random by the shell at every start.
    pub instance: u64,
    /// Encodings and how to choose among them.
    pub encoding: Encoding,
    /// How long an exchange waits for the gateway, at its start or for its outcome; how long a
    /// carrier may take to say HELLO, and how long a gateway that shuts down waits for edges to
    /// close theirs.
    pub connect_timeout: Duration,
    /// How long the gateway keeps an answer whose carrier broke.
    pub retain: Duration,
    /// Most exchanges open at once.
    pub max_exchanges: usize,
    /// Memory of all encoders, in bytes: beyond it windows shrink, then bodies go uncoded. All
    /// decoders get as much again: beyond it decoding waits its turn.
    pub codec_bytes: usize,
    /// Memory for bodies from the peer, in bytes, shared out as credit beyond what each exchange
    /// starts with.
    pub receive_bytes: u64,
    /// Memory for answers kept in case their carrier breaks, in bytes.
    pub retained_bytes: usize,
}

impl Config {
    /// The defaults of one role.
    #[must_use]
    pub fn new(role: Role, instance: u64) -> Self {
        Self {
            role,
            instance,
            encoding: Encoding::auto(),
            connect_timeout: Duration::from_secs(30),
            retain: Duration::from_secs(120),
            max_exchanges: 256,
            codec_bytes: 24 << 20,
            receive_bytes: 8 << 20,
            retained_bytes: 4 << 20,
        }
    }
}

/// The policy with the codecs its arms stand for.
#[derive(Clone, Debug)]
pub struct Encoding {
    policy: decide::Policy,
    arms: Vec<codec::Options>,
}

impl Encoding {
    /// Compresses what compresses and is over a packet.
    #[must_use]
    pub fn auto() -> Self {
        let zstd = |level| codec::Options { codec: 2, level, window_log: codec::MAX_WINDOW_LOG };
        let policy = decide::Policy::Auto {
            identity: decide::Arm(0),
            short: decide::Arm(1),
            streaming: decide::Arm(2),
        };
        Self { policy, arms: vec![codec::Options::IDENTITY, zstd(9), zstd(3)] }
    }

    /// Always the same coding.
    #[must_use]
    pub fn fixed(options: codec::Options) -> Self {
        Self { policy: decide::Policy::Fixed(decide::Arm(0)), arms: vec![options] }
    }

    /// Reads `auto`, `NAME` or `NAME:LEVEL`.
    pub fn of(text: &str) -> Result<Self, codec::Error> {
        if text == "auto" { Ok(Self::auto()) } else { codec::Options::of(text).map(Self::fixed) }
    }

    pub(crate) fn choose(&self, facts: &decide::Facts<'_>) -> (codec::Options, decide::Choice) {
        let choice = self.policy.choose(facts);
        (self.arms.get(choice.arm.0).copied().unwrap_or(codec::Options::IDENTITY), choice)
    }

    pub(crate) fn observe(&self, plain_bytes: usize, coded_bytes: usize) -> bool {
        self.policy.observe(plain_bytes, coded_bytes)
    }
}
