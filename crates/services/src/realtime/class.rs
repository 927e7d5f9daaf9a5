//! Which queue a message goes to: by path, by SOAP header, or by the urgency of RFC 9218.

#![allow(clippy::result_large_err, reason = "a refusal's line is in place: nothing here allocates")]

use super::request::Refusal;

/// Most queues, each with a thread.
pub const MAX_CLASSES: usize = 8;
/// The urgency of who says none (RFC 9218 §4.1).
const USUAL_URGENCY: usize = 3;
/// How many urgencies there are (RFC 9218 §4.1), 0 the most urgent.
const URGENCIES: usize = 8;

/// The class that a path names: `Ok(None)` for the service's own, `/consumer`; the number behind it
/// for `/consumer/N`.
///
/// # Errors
/// `Err(())` for a path of nothing here.
#[allow(clippy::result_unit_err)]
pub fn of_path(path: &str) -> Result<Option<usize>, ()> {
    let path = path.split('?').next().unwrap_or_default();
    match path.strip_prefix("/consumer").ok_or(())? {
        "" | "/" => Ok(None),
        rest => {
            let number = rest.strip_prefix('/').ok_or(())?;
            let is_number = number.len() < 3 && number.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { number.parse().map(Some).map_err(drop) } else { Err(()) }
        }
    }
}

/// The urgency in a field `Priority` (RFC 9218 §4.1): 0 to 7; `None` where it says no such.
#[must_use]
pub fn urgency(field: &str) -> Option<usize> {
    let mut members = field.split(',').map(str::trim_ascii);
    let value = members.rfind(|member| member.starts_with("u="))?.strip_prefix("u=")?;
    // A member may have parameters (RFC 8941 §3.1.2).
    let digit = value.split(';').next().unwrap_or_default();
    digit.parse().ok().filter(|urgency| *urgency < URGENCIES && digit.len() == 1)
}

/// The class of a message, 0 the most urgent of `classes`. The path counts most, then the header
/// block `Class`, then the field `Priority`, whose urgencies are spread over the classes.
///
/// # Errors
/// [`Refusal`] for a class that there is not, and where path and header differ.
pub fn choose(
    path: Option<usize>,
    header: Option<usize>,
    urgency: Option<usize>,
    classes: usize,
) -> Result<usize, Refusal> {
    if let (Some(path), Some(header)) = (path, header)
        && path != header
    {
        return Err(Refusal::sender(format_args!(
            "the path names class {path} and header Class {header}; send one of them"
        )));
    }
    match path.or(header) {
        Some(class) if class < classes => Ok(class),
        Some(class) => {
            let last = classes.saturating_sub(1);
            Err(Refusal::sender(format_args!("no class {class}; choose 0 (urgent) to {last}")))
        }
        None => Ok(urgency.unwrap_or(USUAL_URGENCY) * classes / URGENCIES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_class_or_none() {
        for (path, class) in [
            ("/consumer", Ok(None)),
            ("/consumer/", Ok(None)),
            ("/consumer?wsdl", Ok(None)),
            ("/consumer/0", Ok(Some(0))),
            ("/consumer/12", Ok(Some(12))),
            ("/consumer/123", Err(())),
            ("/consumer/+1", Err(())),
            ("/consumer/1/2", Err(())),
            ("/consumers", Err(())),
            ("/", Err(())),
        ] {
            assert_eq!(of_path(path), class, "{path}");
        }
    }

    #[test]
    fn urgencies_are_read_as_rfc_9218_has_them() {
        for (field, found) in [
            ("u=0", Some(0)),
            ("i, u=7", Some(7)),
            ("u=1, u=5", Some(5)),
            ("u=2;x=1", Some(2)),
            ("u=8", None),
            ("u=-1", None),
            ("u=+1", None),
            ("", None),
        ] {
            assert_eq!(urgency(field), found, "{field}");
        }
    }

    #[test]
    fn the_path_counts_most_and_urgencies_are_spread() {
        let class = |path, header, urgency| choose(path, header, urgency, 3).map_err(|_| ());
        assert_eq!(class(Some(2), None, Some(0)), Ok(2));
        assert_eq!(class(Some(2), Some(2), None), Ok(2));
        assert_eq!(class(Some(2), Some(1), None), Err(()));
        assert_eq!(class(None, Some(1), Some(0)), Ok(1));
        assert_eq!(class(None, Some(3), None), Err(()));
        assert_eq!(class(None, None, None), Ok(1));
        let all: Vec<_> = (0..8).map(|urgency| class(None, None, Some(urgency))).collect();
        assert_eq!(all, [0, 0, 0, 1, 1, 1, 2, 2].map(Ok));
        assert_eq!(choose(None, None, Some(7), 1).ok(), Some(0));
    }
}
