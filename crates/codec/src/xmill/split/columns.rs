//! The values of one path, in the form that suits them (H. Liefke, D. Suciu, "XMill", SIGMOD 2000,
//! §5: semantic compressors).

use super::bytes::{Input, put_number};
use super::numbers::{Counted, Counter, Shaped, put_shaped};
use super::words::{self, Distinct, Words, put_words};
use crate::xmill::outline::Broken;

/// Forms of a column.
const SAME: u8 = 0;
const CHOICE: u8 = 1;
const COUNTED: u8 = 2;
const SHARED: u8 = 3;
const LINES: u8 = 4;
const STATED: u8 = 5;
const SHAPED: u8 = 6;
const WORDS: u8 = 7;
const AGAIN: u8 = 8;
/// Values to choose from are numbered by one byte.
const CHOICES: usize = 256;
/// Times that a value of a choice comes on average, at least.
const TIMES: usize = 4;

/// The columns of a block as they are written.
pub(super) struct Writer {
    /// The window as a power of two.
    log: u32,
    /// Tells which form is the best.
    trial: zstd::bulk::Compressor<'static>,
    /// Columns so far.
    count: usize,
    /// Those of words.
    words: usize,
    /// Those that count, with their numbers.
    counted: Vec<(usize, Vec<i64>)>,
}

impl Writer {
    pub(super) fn new(log: u32) -> Self {
        let trial = zstd::bulk::Compressor::new(1).unwrap_or_default();
        Self { log, trial, count: 0, words: 0, counted: Vec::new() }
    }

    /// Writes a column in its form; one without values is empty.
    pub(super) fn put(&mut self, values: &[&[u8]], out: &mut Vec<u8>) {
        self.count += 1;
        let Some(&first) = values.first() else { return };
        if values.iter().all(|&value| value == first) {
            out.push(SAME);
            out.extend_from_slice(first);
            return;
        }
        let counted = Counted::of(values);
        if let Some(column) = counted.as_ref().and_then(|counted| self.same_as(counted)) {
            out.push(AGAIN);
            put_number(column, out);
            counted.iter().for_each(|counted| counted.put_frame(out));
            return;
        }
        let mut forms = Vec::with_capacity(2);
        let mut form = vec![CHOICE];
        if put_choice(values, &mut form) {
            forms.push(form);
        } else if let Some(counted) = &counted {
            let mut form = vec![COUNTED];
            counted.put_frame(&mut form);
            counted.put_numbers(&mut form);
            forms.push(form);
        } else {
            let mut form = vec![SHAPED];
            if !put_shaped(values, &mut form) {
                form = vec![WORDS];
                if self.words == words::COLUMNS || !put_words(values, self.log, &mut form) {
                    form.clear();
                }
            }
            forms.extend(Some(form).filter(|form| !form.is_empty()));
        }
        let mut form = vec![LINES];
        form[0] = put_texts(values, &mut form);
        forms.push(form);
        let best = self.least(&forms);
        self.words += usize::from(forms[best][0] == WORDS);
        if let (COUNTED, Some(counted)) = (forms[best][0], counted) {
            self.counted.push((self.count - 1, counted.numbers));
        }
        out.append(&mut forms[best]);
    }

    /// The earlier column that has the same numbers.
    fn same_as(&self, counted: &Counted<'_>) -> Option<usize> {
        let same = |(_, numbers): &&(usize, Vec<i64>)| numbers.starts_with(&counted.numbers);
        self.counted.iter().find(same).map(|(column, _)| *column)
    }

    /// Which form a quick compressor makes the shortest, the first if several are.
    fn least(&mut self, forms: &[Vec<u8>]) -> usize {
        if forms.len() == 1 {
            return 0;
        }
        let trial = &mut self.trial;
        let cost = |form: &Vec<u8>| trial.compress(form).map_or(form.len(), |coded| coded.len());
        let costs: Vec<_> = forms.iter().map(cost).collect();
        (0..forms.len()).min_by_key(|&form| costs[form]).unwrap_or(0)
    }
}

/// Writes texts as they are, or from where they differ from the one before.
fn put_texts(values: &[&[u8]], out: &mut Vec<u8>) -> u8 {
    if values.iter().any(|value| value.contains(&0)) {
        for value in values {
            put_number(value.len(), out);
            out.extend_from_slice(value);
        }
        return STATED;
    }
    let shares = shares(values);
    let mut last: &[u8] = &[];
    for value in values {
        let mut from = 0;
        if shares {
            from = shared(last, value);
            out.push(u8::try_from(from).unwrap_or(u8::MAX));
            last = value;
        }
        out.extend_from_slice(&value[from..]);
        out.push(0);
    }
    if shares { SHARED } else { LINES }
}

/// Bytes at the begin that two values share, as far as a byte can tell.
fn shared(last: &[u8], value: &[u8]) -> usize {
    last.iter().zip(value).take(usize::from(u8::MAX)).take_while(|(a, b)| a == b).count()
}

/// Whether most bytes of most values are those at the begin of the value before.
fn shares(values: &[&[u8]]) -> bool {
    let pairs = values.iter().zip(values.iter().skip(1));
    let most = pairs.filter(|(last, value)| shared(last, value) * 4 > value.len() * 3);
    most.count() * 4 > values.len() * 3
}

/// Writes the values to choose from, and which one came each time; whether that may pay.
fn put_choice(values: &[&[u8]], out: &mut Vec<u8>) -> bool {
    let mut distinct = Distinct::new();
    let mut which = Vec::with_capacity(values.len());
    for value in values {
        let number = distinct.number(value);
        let Ok(byte) = u8::try_from(number) else { return false };
        if number > values.len() / TIMES {
            return false;
        }
        which.push(byte);
    }
    if distinct.all.len() * TIMES > values.len() {
        return false;
    }
    put_number(distinct.all.len(), out);
    for (value, _) in distinct.all {
        put_number(value.len(), out);
        out.extend_from_slice(value);
    }
    out.extend(which);
    true
}

/// Gives the values of a column one by one.
pub(super) enum Reader<'a> {
    Same(&'a [u8]),
    Choice { all: Vec<&'a [u8]>, which: Input<'a> },
    Counted(Counter<'a>),
    Shaped(Shaped<'a>),
    Words(Words<'a>),
    Shared { last: Vec<u8>, rest: Input<'a> },
    Lines(Input<'a>),
    Stated(Input<'a>),
}

impl<'a> Reader<'a> {
    /// Of a column behind some others, in a window of 2^`log` bytes.
    pub(super) fn of(
        mut input: Input<'a>,
        log: u32,
        before: &[Option<Self>],
    ) -> Result<Self, Broken> {
        Ok(match input.byte()? {
            SAME => Self::Same(input.rest()),
            CHOICE => {
                let count = input.number()?;
                if count > CHOICES {
                    return Err(Broken::Unknown);
                }
                let all = (0..count).map(|_| input.text()).collect::<Result<_, _>>()?;
                Self::Choice { all, which: input }
            }
            COUNTED => Self::Counted(Counter::of(&mut input, None)?),
            AGAIN => {
                let Some(Some(Self::Counted(other))) = before.get(input.number()?) else {
                    return Err(Broken::Unknown);
                };
                Self::Counted(Counter::of(&mut input, Some(other.row()))?)
            }
            SHAPED => Self::Shaped(Shaped::of(&mut input)?),
            WORDS => {
                let words = before.iter().flatten().filter(|other| matches!(other, Self::Words(_)));
                if words.count() == words::COLUMNS {
                    return Err(Broken::Unknown);
                }
                Self::Words(Words::of(&mut input, log)?)
            }
            SHARED => Self::Shared { last: Vec::new(), rest: input },
            LINES => Self::Lines(input),
            STATED => Self::Stated(input),
            _ => return Err(Broken::Unknown),
        })
    }

    /// Appends the next value, unless `out` would be longer than `most`.
    pub(super) fn next(&mut self, out: &mut Vec<u8>, most: usize) -> Result<(), Broken> {
        let value = match self {
            Self::Same(value) => value,
            Self::Choice { all, which } => {
                *all.get(usize::from(which.byte()?)).ok_or(Broken::Unknown)?
            }
            Self::Lines(rest) => rest.line()?,
            Self::Stated(rest) => rest.text()?,
            Self::Shared { last, rest } => {
                let shared = usize::from(rest.byte()?);
                if shared > last.len() {
                    return Err(Broken::Unknown);
                }
                last.truncate(shared);
                last.extend_from_slice(rest.line()?);
                last
            }
            Self::Counted(counter) => return counter.next(out),
            Self::Shaped(shaped) => return shaped.next(out),
            Self::Words(words) => return words.next(out, most),
        };
        if value.len() > most.saturating_sub(out.len()) {
            return Err(Broken::Overlong);
        }
        out.extend_from_slice(value);
        Ok(())
    }

    /// Whether no value is left.
    pub(super) fn is_used_up(&self) -> bool {
        match self {
            Self::Same(_) => true,
            Self::Counted(counter) => counter.row().is_used_up(),
            Self::Shaped(shaped) => shaped.is_used_up(),
            Self::Words(words) => words.is_used_up(),
            Self::Choice { which: rest, .. }
            | Self::Shared { rest, .. }
            | Self::Lines(rest)
            | Self::Stated(rest) => rest.rest().is_empty(),
        }
    }
}
