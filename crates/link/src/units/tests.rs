use super::*;
use proptest::prelude::*;

#[test]
fn texts_of_the_papers_are_read() {
    assert_eq!(parse_rate("250 kbit/s"), Ok(250_000));
    assert_eq!(parse_rate("9.6 kbit/s"), Ok(9_600));
    assert_eq!(parse_rate("2Mbit/s"), Ok(2_000_000));
    assert_eq!(parse_rate(" 75 bit/s "), Ok(75));
    assert_eq!(parse_duration("550 ms"), Ok(Duration::from_millis(550)));
    assert_eq!(parse_duration("0.3 ms"), Ok(Duration::from_micros(300)));
    assert_eq!(parse_duration("1.5 µs"), Ok(Duration::from_nanos(1_500)));
    assert_eq!(parse_duration("2 min"), Ok(Duration::from_secs(120)));
    assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
    assert_eq!(parse_size("15 KB"), Ok(15_000));
    assert_eq!(parse_size("1.5 KiB"), Ok(1_536));
    assert_eq!(parse_share("1 %"), Ok(0.01));
    assert_eq!(parse_share("7%"), Ok(0.07));
    assert_eq!(parse_share("100 %"), Ok(1.0));
    assert_eq!(parse_share("0"), Ok(0.0));
}

#[test]
fn what_is_finer_than_the_smallest_unit_is_rounded() {
    assert_eq!(parse_duration("0.0000015 ms"), Ok(Duration::from_nanos(2)));
    assert_eq!(parse_duration("1.4999 ns"), Ok(Duration::from_nanos(1)));
    assert_eq!(parse_rate("9.6006 kbit/s"), Ok(9_601));
}

#[test]
fn other_texts_are_refused_with_the_units() {
    let bad = [
        "",
        "x",
        "5",
        "-5 ms",
        "+5 ms",
        "1e3 ms",
        ".5 s",
        "5. s",
        "1.2.3 s",
        "5 parsec",
        "5 MS",
        "1,5 s",
        "0x10 s",
        "9999999999999999999 s",
        "999999999999999999 h",
        "١ ms",
    ];
    for text in bad {
        let message = parse_duration(text).unwrap_err().to_string();
        assert!(message.contains("ns, us, ms, s, min or h"), "{text:?}: {message}");
    }
    for text in ["250", "250 kbps", "250 KBIT/S", "250 kb/s", "999999999999999999 Gbit/s"] {
        assert!(parse_rate(text).unwrap_err().to_string().contains("kbit/s"), "{text}");
    }
    for text in ["0.01", "1", "101 %", "100.0001 %", "-1 %", "NaN %", "inf %"] {
        assert!(parse_share(text).unwrap_err().to_string().contains("0 % to 100 %"), "{text}");
    }
    for text in ["15", "15 kB", "15 kb", "1 TB"] {
        assert!(parse_size(text).unwrap_err().to_string().contains("KiB"), "{text}");
    }
}

#[test]
fn values_are_written_as_people_write_them() {
    assert_eq!(format_rate(9_600), "9.6 kbit/s");
    assert_eq!(format_rate(1_100_000), "1.1 Mbit/s");
    assert_eq!(format_rate(75), "75 bit/s");
    assert_eq!(format_duration(Duration::from_millis(550)), "550 ms");
    assert_eq!(format_duration(Duration::from_secs(90)), "90 s");
    assert_eq!(format_duration(Duration::ZERO), "0 ns");
    assert_eq!(format_size(15_000), "15 KB");
    assert_eq!(format_size(1_001), "1.001 KB");
    assert_eq!(format_share(0.07), "7 %");
    assert_eq!(format_share(0.0), "0 %");
    assert_eq!(format_share(1.0), "100 %");
    assert_eq!(format_share(0.123_456), "12.3456 %");
}

proptest! {
    #[test]
    fn what_is_written_reads_back(value: u64, per_million in 0_u32..=1_000_000) {
        prop_assert_eq!(parse_rate(&format_rate(value >> 5)), Ok(value >> 5));
        prop_assert_eq!(parse_size(&format_size(value >> 5)), Ok(value >> 5));
        let duration = Duration::from_nanos(value >> 5);
        prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        let share = f64::from(per_million) / 1e6;
        prop_assert_eq!(parse_share(&format_share(share)), Ok(share));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,40}") {
        let _ = (parse_rate(&text), parse_duration(&text), parse_size(&text), parse_share(&text));
    }
}
