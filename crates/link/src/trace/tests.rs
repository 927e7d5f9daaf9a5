use super::*;

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

fn trace(text: &str) -> Trace {
    Trace::parse("test", text).unwrap()
}

fn refusal(text: &str) -> String {
    Trace::parse("t.down", text).unwrap_err().to_string()
}

#[test]
fn lines_repeat_from_the_end_of_the_last() {
    let trace = trace("2\n5\n5\n");
    let times: Vec<Duration> = (0..7).map(|index| trace.time(index)).collect();
    assert_eq!(times, [2, 5, 5, 7, 10, 10, 12].map(ms));
    assert_eq!(trace.length(), ms(5));
    assert_eq!(trace.mean_rate_bps(), 3 * 1500 * 8 * 1000 / 5);
}

#[test]
fn the_first_opportunity_is_found_in_any_cycle() {
    let trace = trace("0\n2\n5\n5\n");
    for (start_ms, expected) in [(0, 0), (1, 1), (2, 1), (3, 2), (5, 2), (6, 5), (10, 6), (11, 9)] {
        assert_eq!(trace.first_from(ms(start_ms)), expected, "{start_ms} ms");
    }
    // The same by search from the start, for many instants between milliseconds.
    for step in 0..400_u64 {
        let start = Duration::from_micros(step * 250);
        let slow = (0..).find(|index| trace.time(*index) >= start).unwrap();
        assert_eq!(trace.first_from(start), slow, "{start:?}");
    }
}

#[test]
fn small_packets_share_an_opportunity_and_large_ones_take_several() {
    let (trace, mut cursor) = (trace("10\n20\n30\n"), Cursor::default());
    assert_eq!(cursor.send(&trace, ms(0), 1000), ms(10));
    assert_eq!(cursor.send(&trace, ms(10), 500), ms(10));
    assert_eq!(cursor.send(&trace, ms(10), 1501), ms(30));
    assert_eq!(cursor.send(&trace, ms(30), 1499), ms(30));
    assert_eq!(cursor.send(&trace, ms(30), 1), ms(40));
}

#[test]
fn what_is_left_when_nothing_waits_is_lost() {
    let (trace, mut cursor) = (trace("10\n20\n30\n"), Cursor::default());
    assert_eq!(cursor.send(&trace, ms(0), 100), ms(10));
    assert_eq!(cursor.send(&trace, ms(11), 100), ms(20));
    assert_eq!(cursor.send(&trace, ms(1_000_000_021), 100), ms(1_000_000_030));
}

#[test]
fn bad_traces_are_refused_with_the_line() {
    let cases = [
        ("", "t.down: lasts 0 ms"),
        ("0\n0\n", "t.down: lasts 0 ms"),
        ("1\n\n2\n", "t.down line 2: '' is no time"),
        ("1\n2x\n", "t.down line 2: '2x' is no time"),
        ("-1\n", "t.down line 1: '-1' is no time"),
        ("1\n4294967296\n", "t.down line 2: '4294967296' is no time"),
        ("7\n6\n", "t.down line 2: 6 ms comes after 7 ms"),
    ];
    for (text, expected) in cases {
        let message = refusal(text);
        assert!(message.contains(expected), "{text:?}: {message}");
        assert!(!message.contains('\n'), "{message:?}");
    }
}

#[test]
fn lines_and_bytes_are_bounded() {
    let many = "1\n".repeat(MAX_TRACE_OPPORTUNITIES);
    assert!(Trace::parse("t", &many).is_ok());
    let message = refusal(&format!("{many}1\n"));
    assert!(message.contains("line 4194305"), "{message}");
    let long = "0".repeat(MAX_TRACE_BYTES + 1);
    assert!(refusal(&long).contains("bytes"), "by size, not by its content");
    let endless_line = "x".repeat(1_000_000);
    assert!(refusal(&endless_line).len() < 300);
}
