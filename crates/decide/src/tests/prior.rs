use crate::Arm;
use crate::arm::Prior;
use crate::models::{Models, Subject};
use crate::prior;

#[test]
fn names_and_levels_find_the_nearest_that_is_known() {
    assert_eq!(prior::of("identity"), Some(Prior::IDENTITY));
    assert_eq!(prior::of("zstd:20"), prior::of("zstd:19"));
    assert_eq!(prior::of("zstd:-5"), prior::of("zstd:1"));
    assert!(prior::of("deflate").is_some() && prior::of("xmill:x").is_some());
    assert_ne!(prior::of("brotli:4"), prior::of("brotli:9"));
    assert_eq!(prior::of("lzma:1"), None);
    assert_eq!(prior::of(""), None);
}

#[test]
fn what_is_expected_of_xml_before_it_was_seen_is_plausible() {
    let labels = ["identity", "deflate:6", "zstd:1", "zstd:19", "xmill:9"];
    let models = Models::new(labels.iter().map(|label| prior::of(label).unwrap()).collect());
    for (bytes, head_share, low, high) in
        [(400.0, 0.5, 0.5, 0.85), (30e3, 0.3, 0.08, 0.3), (20e6, 0.2, 0.02, 0.15)]
    {
        let subject = Subject { peer: 0, class: 1, bytes, head_share };
        for (arm, label) in labels.iter().enumerate().skip(1) {
            let share = models.expect(&subject, Arm(arm)).unwrap().bytes / bytes;
            assert!((low..high).contains(&share), "{label} of {bytes}: {share}");
        }
    }
}
