//! Columns of numbers and dates: what all values share apart from what they count.

use super::bytes::{Input, put_number, put_signed};
use super::forms::{DIGITS, Form, digits, put_digits};
use crate::xmill::outline::Broken;

/// Fewer values are not worth a form.
const LEAST: usize = 4;
/// Runs of digits in a value of one shape.
const RUNS: usize = 16;

/// Writes numbers or their differences, whichever are smaller, the highest byte of all first: those
/// repeat, and the lowest are left to themselves.
fn put_row(numbers: &[i64], out: &mut Vec<u8>) {
    let least = numbers.iter().copied().min().unwrap_or(0);
    let plain = numbers.iter().map(|number| number.wrapping_sub(least).cast_unsigned());
    let mut last = least;
    let differences = numbers.iter().map(|&number| {
        let away = number.wrapping_sub(last);
        last = number;
        (away << 1 ^ away >> 63).cast_unsigned()
    });
    let (plain, differences): (Vec<u64>, Vec<u64>) = (plain.collect(), differences.collect());
    let bits = |all: &[u64]| all.iter().map(|number| 64 - number.leading_zeros()).sum::<u32>();
    let by_difference = bits(&differences) < bits(&plain);
    let all = if by_difference { differences } else { plain };
    let widest = all.iter().copied().max().unwrap_or(0);
    let width = 8 - widest.leading_zeros() as usize / 8;
    out.push(u8::from(by_difference) << 4 | u8::try_from(width).unwrap_or(8));
    put_signed(least, out);
    for plane in (0..width).rev() {
        out.extend(all.iter().map(|number| number.to_le_bytes()[plane]));
    }
}

/// Gives such numbers one by one.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    by_difference: bool,
    width: usize,
    planes: &'a [u8],
    /// Numbers in a plane, and how many of them are wanted.
    count: usize,
    wanted: usize,
    at: usize,
    last: i64,
}

impl<'a> Row<'a> {
    fn of(input: &mut Input<'a>, count: usize) -> Result<Self, Broken> {
        let mode = input.byte()?;
        let width = usize::from(mode & 15);
        if mode > 0x18 || width > 8 {
            return Err(Broken::Unknown);
        }
        let last = input.signed()?;
        let planes = input.take(count.checked_mul(width).ok_or(Broken::Unknown)?)?;
        Ok(Self { by_difference: mode > 15, width, planes, count, wanted: count, at: 0, last })
    }

    fn next(&mut self) -> Result<i64, Broken> {
        if self.at == self.wanted {
            return Err(Broken::Unknown);
        }
        let number = (0..self.width).fold(0_u64, |number, plane| {
            number << 8 | u64::from(self.planes[plane * self.count + self.at])
        });
        self.at += 1;
        if !self.by_difference {
            return Ok(self.last.wrapping_add_unsigned(number));
        }
        let away = (number >> 1).cast_signed() ^ -(number & 1).cast_signed();
        self.last = self.last.wrapping_add(away);
        Ok(self.last)
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.at == self.wanted
    }
}

/// What the values of a column share, and the numbers in between.
pub(super) struct Counted<'a> {
    prefix: &'a [u8],
    suffix: &'a [u8],
    form: Form,
    pub(super) numbers: Vec<i64>,
}

impl<'a> Counted<'a> {
    /// Finds a shared begin and end around a number in every value.
    pub(super) fn of(values: &[&'a [u8]]) -> Option<Self> {
        let first = *values.first().filter(|_| values.len() >= LEAST)?;
        let tail = first.iter().rposition(u8::is_ascii_digit)? + 1;
        // Dates have a form of their own, whatever of them all values share.
        for end in [19, 10] {
            let form = first.get(..end).and_then(Form::of);
            if let Some(form @ (Form::Date | Form::DateTime)) = form
                && let Some(this) = Self::with(values, &first[..0], &first[end..], form)
            {
                return Some(this);
            }
        }
        let mut prefix = tail;
        for value in values {
            prefix = value.iter().zip(first).take(prefix).take_while(|(a, b)| a == b).count();
            if !value.ends_with(&first[tail..]) {
                return None;
            }
        }
        while prefix > 0 && matches!(first[prefix - 1], b'0'..=b'9' | b'.' | b'-') {
            prefix -= 1;
        }
        let form = Form::of(&first[prefix..tail])?;
        let (prefix, suffix) = (&first[..prefix], &first[tail..]);
        let all = Self::with(values, prefix, suffix, form);
        match form {
            // The first may have as many digits as it would have had without zeros before it.
            Form::Decimal { width: 0, places } => all.or_else(|| {
                let whole = tail - prefix.len() - usize::from(places) - usize::from(places > 0);
                let width =
                    u8::try_from(whole).ok().filter(|&width| usize::from(width) <= DIGITS)?;
                Self::with(values, prefix, suffix, Form::Decimal { width, places })
            }),
            _ => all,
        }
    }

    fn with(values: &[&[u8]], prefix: &'a [u8], suffix: &'a [u8], form: Form) -> Option<Self> {
        let number = |value: &&[u8]| form.read(value.strip_prefix(prefix)?.strip_suffix(suffix)?);
        let numbers = values.iter().map(number).collect::<Option<_>>()?;
        Some(Self { prefix, suffix, form, numbers })
    }

    /// Writes what is shared.
    pub(super) fn put_frame(&self, out: &mut Vec<u8>) {
        for text in [self.prefix, self.suffix] {
            put_number(text.len(), out);
            out.extend_from_slice(text);
        }
        self.form.put(out);
        put_number(self.numbers.len(), out);
    }

    /// Writes the numbers.
    pub(super) fn put_numbers(&self, out: &mut Vec<u8>) {
        put_row(&self.numbers, out);
    }
}

/// Gives the values of such a column one by one.
pub(super) struct Counter<'a> {
    prefix: &'a [u8],
    suffix: &'a [u8],
    form: Form,
    row: Row<'a>,
}

impl<'a> Counter<'a> {
    /// With numbers of its own, or those of another column.
    pub(super) fn of(input: &mut Input<'a>, other: Option<Row<'a>>) -> Result<Self, Broken> {
        let (prefix, suffix) = (input.text()?, input.text()?);
        let form = Form::take(input)?;
        let count = input.number()?;
        let row = match other {
            Some(row) if count <= row.wanted => Row { wanted: count, ..row },
            Some(_) => return Err(Broken::Unknown),
            None => Row::of(input, count)?,
        };
        Ok(Self { prefix, suffix, form, row })
    }

    /// The numbers that are left.
    pub(super) fn row(&self) -> Row<'a> {
        self.row
    }

    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> Result<(), Broken> {
        let number = self.row.next()?;
        out.extend_from_slice(self.prefix);
        self.form.write(number, out);
        out.extend_from_slice(self.suffix);
        Ok(())
    }
}

/// Where the runs of digits of a value are.
fn runs(value: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + value.get(at..)?.iter().position(u8::is_ascii_digit)?;
        let rest = &value[start..];
        at = start + rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        Some((start, at))
    })
}

/// Writes values that differ in nothing but digits, each run of them by itself (as `41-234-567`);
/// whether they do.
pub(super) fn put_shaped(values: &[&[u8]], out: &mut Vec<u8>) -> bool {
    let Some(first) = values.first().filter(|_| values.len() >= LEAST) else { return false };
    let all: Vec<_> = runs(first).take(RUNS + 1).collect();
    let alike = |value: &&[u8]| {
        value.len() == first.len()
            && value
                .iter()
                .zip(*first)
                .all(|(a, b)| a == b || a.is_ascii_digit() && b.is_ascii_digit())
    };
    let too_long = all.iter().any(|(start, end)| end - start > DIGITS);
    if all.is_empty() || all.len() > RUNS || too_long || !values.iter().all(alike) {
        return false;
    }
    put_number(first.len(), out);
    out.extend_from_slice(first);
    put_number(values.len(), out);
    for (start, end) in all {
        let numbers: Vec<_> =
            values.iter().map(|value| digits(&value[start..end]).unwrap_or(0)).collect();
        put_row(&numbers, out);
    }
    true
}

/// Gives the values of such a column one by one.
pub(super) struct Shaped<'a> {
    shape: &'a [u8],
    rows: Vec<Row<'a>>,
}

impl<'a> Shaped<'a> {
    pub(super) fn of(input: &mut Input<'a>) -> Result<Self, Broken> {
        let shape = input.text()?;
        let count = input.number()?;
        let rows = runs(shape).take(RUNS + 1).map(|_| Row::of(input, count));
        let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
        if rows.len() > RUNS { Err(Broken::Unknown) } else { Ok(Self { shape, rows }) }
    }

    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> Result<(), Broken> {
        let mut at = 0;
        for ((start, end), row) in runs(self.shape).zip(&mut self.rows) {
            out.extend_from_slice(&self.shape[at..start]);
            put_digits(row.next()?.unsigned_abs(), (end - start).min(DIGITS), out);
            at = end;
        }
        out.extend_from_slice(&self.shape[at..]);
        Ok(())
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.rows.iter().all(Row::is_used_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_numbers_come_back() {
        for (values, is_counted) in [
            (vec!["1", "2", "30", "-4"], true),
            (vec!["1.50", "22.00", "-0.05"], true),
            (vec!["Customer#000000007", "Customer#000001000"], true),
            (vec!["1996-02-29", "1997-12-31", "0000-01-01"], true),
            (vec!["1996-02-29Z", "1997-12-31Z"], true),
            (vec!["2004-01-15T23:59:59.000Z", "2004-01-16T00:00:00.000Z"], true),
            (vec!["urn:a-100 m", "urn:a-7 m"], true),
            (vec!["999999999999999999", "-999999999999999999"], true),
            (vec!["10", "05"], true),
            (vec!["1", "01"], false),
            (vec!["-0", "1"], false),
            (vec!["1997-02-29", "1997-02-28"], false),
            (vec!["1e5", "a"], false),
            (vec!["9999999999999999999", "1"], false),
            (vec!["", "1"], false),
            (vec!["1.", "2."], true),
        ] {
            let texts: Vec<_> = values.iter().map(|text| text.as_bytes()).collect();
            let texts = texts.repeat(2);
            let counted = Counted::of(&texts);
            assert_eq!(counted.is_some(), is_counted, "{values:?}");
            let Some(counted) = counted else { continue };
            let mut coded = Vec::new();
            counted.put_frame(&mut coded);
            counted.put_numbers(&mut coded);
            let mut counter = Counter::of(&mut Input::of(&coded), None).unwrap();
            for text in texts {
                let mut back = Vec::new();
                counter.next(&mut back).unwrap();
                assert_eq!(back, text);
            }
            assert!(counter.row().is_used_up());
        }
    }
}
