//! Any bytes as a datagram of MQTT/UDP: what is read is written and read again, and who signs what
//! was read is known by its key alone.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proto::mqttudp::{Datagram, Signature, Signer};

const KEY: &[u8] = b"a key";

fuzz_target!(|data: &[u8]| {
    let Ok(datagram) = Datagram::decode(data) else { return };
    let _ = datagram.verify(KEY);
    let flags = data.first().copied().unwrap_or(0);
    let signer = Signer { key: KEY, sha256: flags & 1 != 0, md5: flags & 2 != 0 };
    let mut out = Vec::new();
    if datagram.packet.encode(&datagram.records, &signer, &mut out).is_err() {
        return;
    }
    let same = Datagram::decode(&out).expect("what was written is read");
    assert_eq!((same.packet, same.records), (datagram.packet, datagram.records));
    let expected = match (signer.sha256, signer.md5) {
        (true, _) => Signature::Sha256,
        (false, true) => Signature::Md5,
        (false, false) => Signature::Missing,
    };
    assert_eq!(same.verify(KEY), expected);
    if expected != Signature::Missing {
        assert_eq!(same.verify(b"another"), Signature::Wrong);
    }
});
