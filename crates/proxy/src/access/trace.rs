//! Which trace a request belongs to, by W3C Trace Context. The fields pass as they came, like any
//! others; of them the log and the history have the trace's id alone.

/// The field (Trace Context §3.2).
pub(super) const FIELD: &str = "traceparent";
/// `00-` and the ids of the trace and of its caller and the flags (§3.2.2).
const BYTES: usize = 55;

/// The id of the trace that a request's fields name, as 32 hexadecimal digits. None where there is
/// not exactly one field of that form: such a trace begins anew behind us (§3.2.2.3), and is not
/// ours to name.
pub(super) fn id<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Option<String> {
    let value = values.next()?;
    if values.next().is_some() || value.len() < BYTES {
        return None;
    }
    let (known, rest) = value.split_at(BYTES);
    let mut parts = known.split(|byte| *byte == b'-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let (parent, flags) = (parts.next()?, parts.next()?);
    let is_hex = |part: &[u8], len| {
        part.len() == len && part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_said = |part: &[u8], len| is_hex(part, len) && part.iter().any(|byte| *byte != b'0');
    // Of a later version more may follow, behind another dash (§3.2.4).
    let is_whole = rest.is_empty() || (version != b"00" && rest.first() == Some(&b'-'));
    let is_valid = is_hex(version, 2)
        && version != b"ff"
        && is_said(trace, 32)
        && is_said(parent, 16)
        && is_hex(flags, 2)
        && parts.next().is_none()
        && is_whole;
    is_valid.then(|| String::from_utf8_lossy(trace).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn of(values: &[&str]) -> Option<String> {
        id(values.iter().map(|value| value.as_bytes()))
    }

    #[test]
    fn a_valid_field_has_an_id_and_no_other() {
        let trace = Some("0af7651916cd43dd8448eb211c80319c".to_owned());
        assert_eq!(of(&[GOOD]), trace);
        // A version to come is read as far as it is known.
        assert_eq!(of(&[&GOOD.replace("00-", "cc-")]), trace);
        assert_eq!(of(&[&format!("{}-more", GOOD.replace("00-", "cc-"))]), trace);
        for bad in [
            "",
            "00",
            &GOOD[..54],
            &format!("{GOOD}-more"),
            &format!("{GOOD}0"),
            &format!("{}.more", GOOD.replace("00-", "cc-")),
            &GOOD.replace("00-", "ff-"),
            &GOOD.replace("0af", "0AF"),
            &GOOD.replace("0af", "0ag"),
            &GOOD.replace("-b7", "+b7"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
            "\u{e9}0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(of(&[bad]), None, "{bad}");
        }
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[GOOD, GOOD]), None);
    }
}
