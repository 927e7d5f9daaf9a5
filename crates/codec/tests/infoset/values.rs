//! Values that say the same in different words.

/// How values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// Character by character.
    Exact,
    /// Alike in the canonical form of a type that both can have (XML Schema Part 2 §3).
    Canonical,
}

/// Whether two values are alike.
///
/// The type is not known here: values are alike if some type makes them so, lists item by item.
/// That takes `1` for `true` in a string too, which a test of strings sees elsewhere.
pub(crate) fn same_value(a: &str, b: &str, values: Values) -> bool {
    if a == b {
        return true;
    }
    if values == Values::Exact {
        return false;
    }
    let (left, right) = (a.split_ascii_whitespace(), b.split_ascii_whitespace());
    if left.clone().count() == right.clone().count()
        && left.zip(right).all(|(a, b)| same_atom(a, b))
    {
        return true;
    }
    // base64Binary may have white space anywhere (XML Schema Part 2 §3.2.16).
    let packed = |text: &str| text.split_ascii_whitespace().collect::<String>();
    let is_base64 = |text: &str| {
        text.len().is_multiple_of(4)
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))
    };
    let (a, b) = (packed(a), packed(b));
    is_base64(&a) && a == b
}

fn same_atom(a: &str, b: &str) -> bool {
    fn both<T: PartialEq>(a: &str, b: &str, canonical: fn(&str) -> Option<T>) -> bool {
        canonical(a).is_some_and(|a| canonical(b) == Some(a))
    }
    a == b || both(a, b, number) || both(a, b, boolean) || both(a, b, moment) || both(a, b, hex)
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn hex(text: &str) -> Option<String> {
    let is_hex = text.len().is_multiple_of(2) && text.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| text.to_ascii_uppercase())
}

/// Sign, digits without zeros at the ends, exponent: integer, decimal, float and double alike.
fn number(text: &str) -> Option<(bool, String, i64)> {
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let shortened = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - shortened.len()).ok()?;
    let point = i64::try_from(fraction.len()).ok()?;
    let significant = shortened.trim_start_matches('0').to_string();
    if significant.is_empty() {
        return Some((false, significant, 0));
    }
    Some((negative, significant, exponent.checked_sub(point)?.checked_add(zeros)?))
}

/// Dates and times: no zeros at the end of fractions of seconds, `Z` for no distance from UTC.
fn moment(text: &str) -> Option<String> {
    let allowed =
        |b: u8| b.is_ascii_digit() || matches!(b, b'-' | b':' | b'T' | b'.' | b'Z' | b'+');
    let has_parts = text.contains(':') || text.get(1..).is_some_and(|rest| rest.contains('-'));
    if !has_parts || !text.bytes().all(allowed) {
        return None;
    }
    let zone = ["+00:00", "-00:00"].iter().find_map(|zone| text.strip_suffix(zone));
    let text = zone.map_or_else(|| text.to_string(), |rest| format!("{rest}Z"));
    let text = midnight(&text).unwrap_or(text);
    let Some((before, after)) = text.split_once('.') else { return Some(text) };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let (fraction, rest) = after.split_at(digits);
    Some(match fraction.trim_end_matches('0') {
        "" => format!("{before}{rest}"),
        fraction => format!("{before}.{fraction}{rest}"),
    })
}

/// The end of a day as the begin of the next (XML Schema Part 2 §3.2.7.1).
fn midnight(text: &str) -> Option<String> {
    let (date, time) = text.split_once("T24:00:00")?;
    let mut parts = date.rsplitn(3, '-').map(|part| part.parse::<u32>().ok());
    let (day, month, year) = (parts.next()??, parts.next()??, parts.next()??);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let (year, month, day) = match (month, day) {
        (12, 31) => (year + 1, 1, 1),
        (month, day) if day == days => (year, month + 1, 1),
        (month, day) => (year, month, day + 1),
    };
    Some(format!("{year:04}-{month:02}-{day:02}T00:00:00{time}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alike_values_are_alike_and_others_are_not() {
        for (a, b) in [
            ("16:35:18.0Z", "16:35:18Z"),
            ("2001-01-01T00:00:00.120+00:00", "2001-01-01T00:00:00.12Z"),
            ("2023-12-31T24:00:00Z", "2024-01-01T00:00:00Z"),
            ("2024-02-28T24:00:00.0-07:30", "2024-02-29T00:00:00-07:30"),
            ("1", "true"),
            ("1.0E0", "1"),
            ("+5", "5"),
            ("-0.0", "0"),
            ("12300", "1.23E4"),
            (" a   b ", "a b"),
            ("1 2\n3.0", "1 2 3"),
            ("QUJD REVG", "QUJDREVG"),
            ("0fb7", "0FB7"),
            ("-0003.10", "-3.1"),
        ] {
            assert!(same_value(a, b, Values::Canonical), "{a} {b}");
            assert!(same_value(b, a, Values::Canonical), "{b} {a}");
            assert!(!same_value(a, b, Values::Exact), "{a} {b}");
        }
        for (a, b) in [
            ("16:35:18Z", "16:35:18"),
            ("16:35:18.1", "16:35:18.01"),
            ("1", "false"),
            ("5", "-5"),
            ("1.0", "10"),
            ("a b", "b a"),
            ("a b", "ab"),
            ("abc", "ABC"),
            ("", "0"),
            (".", "0"),
            ("QUJD", "qujd"),
        ] {
            assert!(!same_value(a, b, Values::Canonical), "{a} {b}");
        }
    }
}
