//! How values of simple types are coded (EXI §7, §7.1, §7.2).

use super::built_in::ANY_TYPE;
use super::charset;
use super::compile::Compiler;
use super::model::{Patterns, Primitive, Simple, TypeIndex, Variety};
use super::{Budget, CODEC};
use crate::Error;
use crate::exi::grammar::{Coding, Datatype, DatatypeId};

/// EXI §7.1.5: most values that an n-bit integer may have.
const MAX_BOUNDED: i128 = 4096;

impl Compiler<'_> {
    /// The datatype of a simple type.
    pub(super) fn datatype(&mut self, type_index: TypeIndex) -> Result<DatatypeId, Error> {
        if let Some(&known) = self.datatypes.get(&type_index) {
            return Ok(known);
        }
        let schema = self.schema;
        let Some(simple) = schema.model.simple(type_index) else {
            let what =
                "a value of an attribute or of simple content is of a complex type".to_owned();
            return Err(Error::Malformed { codec: CODEC, offset: 0, what });
        };
        let coding = self.coding(simple)?;
        let lexical = match &coding {
            Coding::Enumeration { item, .. } | Coding::List(item) => {
                self.out.datatypes[*item as usize].lexical.clone()
            }
            coding => lexical(coding).map(|set| set.chars().collect()),
        };
        let made = Datatype {
            coding,
            lexical,
            lineage: self.lineage(type_index),
            white_space: simple.white_space,
        };
        self.budget.take(size_of_datatype(&made))?;
        let id = self.budget.index(self.out.datatypes.len())?;
        self.out.datatypes.push(made);
        self.datatypes.insert(type_index, id);
        Ok(id)
    }

    /// EXI Table 7-1, §7.1.2, §7.1.5, §7.1.10.1, §7.2
    fn coding(&mut self, simple: &Simple) -> Result<Coding, Error> {
        let primitive = match simple.variety {
            Variety::List(item) => return Ok(Coding::List(self.datatype(item)?)),
            Variety::Union => return Ok(Coding::String),
            Variety::Atomic(primitive) => primitive,
        };
        if let Some((values, item)) = &simple.enumeration
            && primitive != Primitive::Qualified
        {
            let values = values.iter().map(|value| String::from(&**value)).collect();
            return Ok(Coding::Enumeration { values, item: self.datatype(*item)? });
        }
        Ok(match primitive {
            Primitive::Other | Primitive::Qualified => Coding::String,
            Primitive::String => match &simple.patterns {
                Patterns::Of(patterns) => {
                    let patterns = patterns.iter().map(|pattern| &**pattern);
                    charset::restricted(patterns).map_or(Coding::String, Coding::Restricted)
                }
                _ => Coding::String,
            },
            Primitive::Boolean if simple.patterns != Patterns::None => Coding::BooleanPattern,
            Primitive::Boolean => Coding::Boolean,
            Primitive::Decimal => Coding::Decimal,
            Primitive::Integer => integer(simple.bounds),
            Primitive::Float => Coding::Float,
            Primitive::Base64 => Coding::Base64,
            Primitive::Hex => Coding::Hex,
            Primitive::DateTime(parts) => Coding::DateTime(parts),
        })
    }

    /// Names of a type and its ancestors, nearest first.
    fn lineage(&self, type_index: TypeIndex) -> Box<[crate::exi::grammar::QName]> {
        let mut names = Vec::new();
        let mut at = type_index;
        while at != ANY_TYPE {
            let found = self.schema.model.type_of(at);
            names.extend(found.name.map(|name| self.strings.name(name)));
            at = found.base;
        }
        names.into()
    }
}

fn size_of_datatype(made: &Datatype) -> usize {
    let coding = match &made.coding {
        Coding::Enumeration { values, .. } => {
            values.iter().map(|value| value.len() + size_of::<String>()).sum()
        }
        Coding::Restricted(set) => size_of_val(&**set),
        _ => 0,
    };
    size_of::<Datatype>() + coding + size_of_val(&*made.lineage) + size_of::<Budget>()
}

/// EXI §7.1.5. A range that begins beyond 38 digits is coded like one without bounds.
fn integer((lower, upper): (Option<i128>, Option<i128>)) -> Coding {
    let range =
        lower.zip(upper).and_then(|(lower, upper)| upper.checked_sub(lower)?.checked_add(1));
    let least = lower.filter(|lower| lower.unsigned_abs() < 10_u128.pow(38));
    match (range, least) {
        (Some(values @ ..=MAX_BOUNDED), Some(lower)) => {
            let mut bits = 0_u8;
            while 1_i128 << bits < values {
                bits += 1;
            }
            Coding::Bounded { lower, bits }
        }
        _ if lower.is_some_and(|lower| lower >= 0) => Coding::Unsigned,
        _ => Coding::Integer,
    }
}

/// EXI Table 7-2, sorted.
fn lexical(coding: &Coding) -> Option<&'static str> {
    Some(match coding {
        Coding::Base64 => {
            "\t\n\r +/0123456789=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        }
        Coding::Hex => "\t\n\r 0123456789ABCDEFabcdef",
        Coding::Boolean | Coding::BooleanPattern => "\t\n\r 01aeflrstu",
        Coding::DateTime(_) => "\t\n\r +-.0123456789:TZ",
        Coding::Decimal => "\t\n\r +-.0123456789",
        Coding::Float => "\t\n\r +-.0123456789EFINae",
        Coding::Integer | Coding::Unsigned | Coding::Bounded { .. } => "\t\n\r +-0123456789",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_by_their_range() {
        assert_eq!(integer((Some(-128), Some(127))), Coding::Bounded { lower: -128, bits: 8 });
        assert_eq!(integer((Some(7), Some(7))), Coding::Bounded { lower: 7, bits: 0 });
        assert_eq!(integer((Some(7), Some(6))), Coding::Bounded { lower: 7, bits: 0 });
        assert_eq!(integer((Some(0), Some(4095))), Coding::Bounded { lower: 0, bits: 12 });
        assert_eq!(integer((Some(0), Some(4096))), Coding::Unsigned);
        assert_eq!(integer((Some(-1), Some(4095))), Coding::Integer);
        assert_eq!(integer((Some(0), None)), Coding::Unsigned);
        assert_eq!(integer((None, Some(5))), Coding::Integer);
        assert_eq!(integer((Some(i128::MAX), Some(i128::MAX))), Coding::Unsigned);
        let large = 9_999_999_999_999_999_990;
        let bounded = Coding::Bounded { lower: large, bits: 4 };
        assert_eq!(integer((Some(large), Some(large + 9))), bounded);
        assert_eq!(integer((Some(i128::MIN), Some(i128::MAX))), Coding::Integer);
    }

    #[test]
    fn lexical_sets_are_sorted() {
        let all = [Coding::Base64, Coding::Hex, Coding::Boolean, Coding::Decimal, Coding::Float];
        for set in all.iter().filter_map(lexical) {
            assert!(set.chars().is_sorted(), "{set}");
        }
    }
}
