//! Values that are more than one string: read to text (EXI §7.1).

use super::{
    bits::{Fault, Reader, width},
    datatype,
    grammar::{Coding, Datatype, DatatypeId},
    read_tables::Values,
};

/// What values other than plain strings are read with.
pub(crate) struct Reading<'a> {
    /// All datatypes.
    pub(crate) types: &'a [Datatype],
    pub(crate) values: &'a mut Values,
    /// Whose value it is.
    pub(crate) name: u32,
    /// Bytes that may come out.
    pub(crate) most: usize,
}

impl Reading<'_> {
    #[inline]
    pub(crate) fn read(
        mut self,
        coding: &Coding,
        from: &mut Reader,
        to: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        match coding {
            Coding::List(item) => self.list(*item, from, to),
            other => self.one(other, from, to),
        }
    }

    fn list(&mut self, item: DatatypeId, from: &mut Reader, to: &mut Vec<u8>) -> Result<(), Fault> {
        let (count, begin) = (from.length()?, to.len());
        let types = self.types;
        let coding = types.get(item as usize).map_or(&Coding::String, |one| &one.coding);
        for at in 0..count {
            // Items may take no bits: what comes out is bounded instead.
            if from.over() {
                return Err(Fault::Short);
            }
            if to.len() - begin > self.most {
                return Err(Fault::Limit(&"output_bytes"));
            }
            if at > 0 {
                to.push(b' ');
            }
            self.one(coding, from, to)?;
        }
        Ok(())
    }

    fn one(&mut self, coding: &Coding, from: &mut Reader, to: &mut Vec<u8>) -> Result<(), Fault> {
        match coding {
            Coding::String | Coding::List(_) => {
                let span =
                    self.values.read(self.name, from, |count, from, to| from.chars(count, to))?;
                self.values.text.copy(span, to);
            }
            Coding::Restricted(set) => {
                let span = self.values.read(self.name, from, |count, from, to| {
                    datatype::read_restricted(set, count, from, to)
                })?;
                self.values.text.copy(span, to);
            }
            Coding::Boolean => {
                let text: &[u8] = if from.bits(1) == 1 { b"true" } else { b"false" };
                to.extend_from_slice(text);
            }
            Coding::BooleanPattern => {
                let forms: [&[u8]; 4] = [b"false", b"0", b"true", b"1"];
                to.extend_from_slice(forms[from.bits(2) as usize & 3]);
            }
            Coding::Integer => datatype::read_any_integer(from, to)?,
            Coding::Unsigned => datatype::read_digits(false, from, to)?,
            Coding::Bounded { lower, bits } => {
                datatype::read_bounded(*lower, u32::from(*bits), from, to);
            }
            Coding::Decimal => datatype::read_decimal(from, to)?,
            Coding::Float => datatype::read_float(from, to)?,
            Coding::DateTime(kind) => datatype::read_date(*kind, from, to)?,
            Coding::Hex => datatype::read_binary(true, from, to)?,
            Coding::Base64 => datatype::read_binary(false, from, to)?,
            Coding::Enumeration { values, .. } => {
                let at = from.bits(width(values.len())) as usize;
                let value = values.get(at).ok_or(Fault::Bad(&"no value has this number"))?;
                to.extend_from_slice(value.as_bytes());
            }
        }
        Ok(())
    }
}
