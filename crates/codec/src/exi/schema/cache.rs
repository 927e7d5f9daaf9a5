//! Grammars as bytes: what their hash is made of, and how they are kept.
//!
//! `LWXG`, a version, the hash, then all tables, numbers as in EXI §7.1.6. The form belongs to this
//! version of the library; another version is refused, and the grammars are compiled again.

use sha2::{Digest, Sha256};

use super::{Budget, CODEC};
use crate::exi::grammar::{
    Branch, Coding, Datatype, DateTime, Element, Event, Grammars, Production, QName, Rule, Type,
    Uri, WhiteSpace,
};
use crate::{Error, Limits};

const MAGIC: &[u8; 5] = b"LWXG\x01";
const HASH_BYTES: usize = 32;
const DATE_TIMES: [DateTime; 8] = [
    DateTime::Year,
    DateTime::YearMonth,
    DateTime::Date,
    DateTime::DateTime,
    DateTime::Month,
    DateTime::MonthDay,
    DateTime::Day,
    DateTime::Time,
];
const WHITE_SPACES: [WhiteSpace; 3] =
    [WhiteSpace::Preserve, WhiteSpace::Replace, WhiteSpace::Collapse];

impl Grammars {
    /// The grammars as bytes that [`Grammars::from_bytes`] reads.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&self.hash);
        out.extend_from_slice(&self.tables());
        out
    }

    /// SHA-256 of all but the hash itself.
    pub(super) fn digest(&self) -> [u8; HASH_BYTES] {
        Sha256::digest(self.tables()).into()
    }

    fn tables(&self) -> Vec<u8> {
        let mut to = Writer(Vec::new());
        to.list(&self.uris, |to, uri| {
            to.text(&uri.uri);
            to.list(&uri.prefixes, |to, prefix| to.text(prefix));
            to.list(&uri.locals, |to, local| to.text(local));
        });
        to.list(&self.datatypes, Writer::datatype);
        to.list(&self.rules, |to, rule| {
            to.list(&rule.first, |to, production| to.production(*production));
            to.list(&rule.second, Writer::branch);
        });
        to.list(&self.types, |to, found| {
            to.number(found.name.is_some().into());
            if let Some(name) = found.name {
                to.name(name);
            }
            to.index(found.first);
            to.index(found.empty);
        });
        to.list(&self.elements, |to, element| {
            to.name(element.name);
            to.index(element.first);
            to.index(element.type_id);
        });
        for map in [&self.global_elements, &self.global_attributes, &self.named_types] {
            let mut sorted: Vec<(QName, u32)> = map.iter().map(|(&name, &id)| (name, id)).collect();
            sorted.sort_unstable();
            to.list(&sorted, |to, &(name, id)| {
                to.name(name);
                to.index(id);
            });
        }
        to.index(self.start);
        to.0
    }

    /// Reads what [`Grammars::to_bytes`] wrote.
    ///
    /// Errors: [`Error::Malformed`] where the bytes are of another version, damaged, or refer to
    /// what is not there; [`Error::Limit`] where they take more than `table_bytes`.
    pub fn from_bytes(bytes: &[u8], limits: &Limits) -> Result<Self, Error> {
        let mut from = Reader { bytes, at: 0, budget: Budget::new(limits) };
        if from.take(MAGIC.len())? != MAGIC {
            return Err(from.malformed("not compiled grammars of this version"));
        }
        let hash = from.take(HASH_BYTES)?.to_vec();
        let mut grammars = Self {
            uris: from.list(Reader::uri)?,
            datatypes: from.list(Reader::datatype)?,
            rules: from.list(Reader::rule)?,
            types: from.list(Reader::type_entry)?,
            elements: from.list(Reader::element)?,
            ..Self::default()
        };
        for map in [
            &mut grammars.global_elements,
            &mut grammars.global_attributes,
            &mut grammars.named_types,
        ] {
            *map = from.list(|from| Ok((from.name()?, from.index()?)))?.into_iter().collect();
        }
        grammars.start = from.index()?;
        if from.at != bytes.len() {
            return Err(from.malformed("bytes behind the grammars"));
        }
        if !grammars.sound() {
            return Err(from.malformed("the grammars refer to what is not there"));
        }
        grammars.hash = grammars.digest();
        match grammars.hash == *hash {
            true => Ok(grammars),
            false => Err(from.malformed("the hash is of other grammars")),
        }
    }

    /// Whether all that is referred to is there, and datatypes are made of earlier ones.
    fn sound(&self) -> bool {
        let name = |name: QName| {
            let uri = self.uris.get(name.uri as usize);
            uri.is_some_and(|uri| (name.local as usize) < uri.locals.len())
        };
        let rule = |id: u32| (id as usize) < self.rules.len();
        let datatype = |id: u32| (id as usize) < self.datatypes.len();
        let element = |id: u32| (id as usize) < self.elements.len();
        let type_id = |id: u32| (id as usize) < self.types.len();
        let production = |found: &Production| {
            rule(found.next)
                && match found.event {
                    Event::StartElement(id) => element(id),
                    Event::StartElementIn(uri) | Event::AttributeIn(uri) => {
                        (uri as usize) < self.uris.len()
                    }
                    Event::Attribute(qname, id) => name(qname) && datatype(id),
                    Event::AttributeUntyped(qname) => name(qname),
                    Event::Characters(id) => datatype(id),
                    _ => true,
                }
        };
        let branch = |found: &Branch| match found {
            Branch::Leaf(leaf) => production(leaf),
            Branch::Group(group) => group.iter().all(production),
        };
        let made = |(at, found): (usize, &Datatype)| {
            let item = match found.coding {
                Coding::Enumeration { item, .. } | Coding::List(item) => (item as usize) < at,
                Coding::Bounded { bits, .. } => bits <= 12,
                _ => true,
            };
            item && found.lineage.iter().all(|&ancestor| name(ancestor))
        };
        self.datatypes.iter().enumerate().all(made)
            && self
                .rules
                .iter()
                .all(|rule| rule.first.iter().all(production) && rule.second.iter().all(branch))
            && self
                .types
                .iter()
                .all(|found| found.name.is_none_or(name) && rule(found.first) && rule(found.empty))
            && self
                .elements
                .iter()
                .all(|found| name(found.name) && rule(found.first) && type_id(found.type_id))
            && self.global_elements.iter().all(|(&qname, &id)| name(qname) && element(id))
            && self.global_attributes.iter().all(|(&qname, &id)| name(qname) && datatype(id))
            && self.named_types.iter().all(|(&qname, &id)| name(qname) && type_id(id))
            && rule(self.start)
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, mut value: u64) {
        while value > 0x7F {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn index(&mut self, value: u32) {
        self.number(value.into());
    }

    fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.number(list.len() as u64);
        for item in list {
            each(self, item);
        }
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn name(&mut self, name: QName) {
        self.index(name.uri);
        self.index(name.local);
    }

    fn production(&mut self, production: Production) {
        let (tag, one, two, three) = match production.event {
            Event::StartDocument => (0, None, None, None),
            Event::EndDocument => (1, None, None, None),
            Event::StartElement(element) => (2, Some(element), None, None),
            Event::StartElementIn(uri) => (3, Some(uri), None, None),
            Event::StartElementAny => (4, None, None, None),
            Event::EndElement => (5, None, None, None),
            Event::Attribute(name, datatype) => {
                (6, Some(name.uri), Some(name.local), Some(datatype))
            }
            Event::AttributeUntyped(name) => (7, Some(name.uri), Some(name.local), None),
            Event::AttributeIn(uri) => (8, Some(uri), None, None),
            Event::AttributeAny => (9, None, None, None),
            Event::AttributeAnyUntyped => (10, None, None, None),
            Event::AttributeType => (11, None, None, None),
            Event::AttributeNil => (12, None, None, None),
            Event::Characters(datatype) => (13, Some(datatype), None, None),
            Event::CharactersUntyped => (14, None, None, None),
            Event::Namespace => (15, None, None, None),
            Event::Comment => (16, None, None, None),
            Event::ProcessingInstruction => (17, None, None, None),
            Event::Doctype => (18, None, None, None),
            Event::EntityReference => (19, None, None, None),
            Event::SelfContained => (20, None, None, None),
        };
        self.number(tag);
        for part in [one, two, three].into_iter().flatten() {
            self.index(part);
        }
        self.index(production.next);
    }

    fn branch(&mut self, branch: &Branch) {
        match branch {
            Branch::Leaf(leaf) => {
                self.number(0);
                self.production(*leaf);
            }
            Branch::Group(group) => {
                self.number(1);
                self.list(group, |to, production| to.production(*production));
            }
        }
    }

    fn characters(&mut self, set: &[char]) {
        self.list(set, |to, &character| to.index(character.into()));
    }

    fn datatype(&mut self, datatype: &Datatype) {
        match &datatype.coding {
            Coding::Base64 => self.number(0),
            Coding::Hex => self.number(1),
            Coding::Boolean => self.number(2),
            Coding::BooleanPattern => self.number(3),
            Coding::Decimal => self.number(4),
            Coding::Float => self.number(5),
            Coding::Integer => self.number(6),
            Coding::Unsigned => self.number(7),
            Coding::Bounded { lower, bits } => {
                self.number(8);
                self.0.extend_from_slice(&lower.to_le_bytes());
                self.number((*bits).into());
            }
            Coding::DateTime(parts) => {
                self.number(9);
                let at = DATE_TIMES.iter().position(|known| known == parts);
                self.number(at.unwrap_or_default() as u64);
            }
            Coding::String => self.number(10),
            Coding::Restricted(set) => {
                self.number(11);
                self.characters(set);
            }
            Coding::Enumeration { values, item } => {
                self.number(12);
                self.list(values, |to, value| to.text(value));
                self.index(*item);
            }
            Coding::List(item) => {
                self.number(13);
                self.index(*item);
            }
        }
        self.number(datatype.lexical.is_some().into());
        if let Some(set) = &datatype.lexical {
            self.characters(set);
        }
        self.list(&datatype.lineage, |to, &name| to.name(name));
        let at = WHITE_SPACES.iter().position(|known| *known == datatype.white_space);
        self.number(at.unwrap_or_default() as u64);
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    budget: Budget,
}

impl<'a> Reader<'a> {
    fn malformed(&self, what: &str) -> Error {
        Error::Malformed { codec: CODEC, offset: self.at as u64, what: what.to_owned() }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..count) else {
            return Err(self.malformed("compiled grammars end too early"));
        };
        self.at += count;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, Error> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            let part = u64::from(byte & 0x7F);
            value |= part << shift;
            if byte < 0x80 {
                // Each number has one form, so that equal grammars are equal bytes.
                let whole = (value >> shift) == part && (byte != 0 || shift == 0);
                return if whole { Ok(value) } else { Err(self.malformed("an overlong number")) };
            }
        }
        Err(self.malformed("an overlong number"))
    }

    fn index(&mut self) -> Result<u32, Error> {
        u32::try_from(self.number()?).map_err(|_| self.malformed("an index over 32 bits"))
    }

    fn list<T>(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let count = self.number()?;
        let mut list = Vec::new();
        for _ in 0..count {
            self.budget.take(size_of::<T>())?;
            list.push(each(self)?);
        }
        Ok(list)
    }

    fn text(&mut self) -> Result<String, Error> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        let text = std::str::from_utf8(self.take(length)?);
        let text = text.map_err(|_| self.malformed("a string is not UTF-8"))?;
        self.budget.take(text.len())?;
        Ok(text.to_owned())
    }

    fn name(&mut self) -> Result<QName, Error> {
        Ok(QName { uri: self.index()?, local: self.index()? })
    }

    fn uri(&mut self) -> Result<Uri, Error> {
        let uri = self.text()?;
        Ok(Uri { uri, prefixes: self.list(Self::text)?, locals: self.list(Self::text)? })
    }

    fn flag(&mut self) -> Result<bool, Error> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.malformed("neither 0 nor 1")),
        }
    }

    fn production(&mut self) -> Result<Production, Error> {
        let event = match self.number()? {
            0 => Event::StartDocument,
            1 => Event::EndDocument,
            2 => Event::StartElement(self.index()?),
            3 => Event::StartElementIn(self.index()?),
            4 => Event::StartElementAny,
            5 => Event::EndElement,
            6 => Event::Attribute(self.name()?, self.index()?),
            7 => Event::AttributeUntyped(self.name()?),
            8 => Event::AttributeIn(self.index()?),
            9 => Event::AttributeAny,
            10 => Event::AttributeAnyUntyped,
            11 => Event::AttributeType,
            12 => Event::AttributeNil,
            13 => Event::Characters(self.index()?),
            14 => Event::CharactersUntyped,
            15 => Event::Namespace,
            16 => Event::Comment,
            17 => Event::ProcessingInstruction,
            18 => Event::Doctype,
            19 => Event::EntityReference,
            20 => Event::SelfContained,
            _ => return Err(self.malformed("an unknown event")),
        };
        Ok(Production { event, next: self.index()? })
    }

    fn branch(&mut self) -> Result<Branch, Error> {
        Ok(if self.flag()? {
            Branch::Group(self.list(Self::production)?.into())
        } else {
            Branch::Leaf(self.production()?)
        })
    }

    fn rule(&mut self) -> Result<Rule, Error> {
        let first = self.list(Self::production)?.into();
        Ok(Rule { first, second: self.list(Self::branch)?.into() })
    }

    fn type_entry(&mut self) -> Result<Type, Error> {
        let name = if self.flag()? { Some(self.name()?) } else { None };
        Ok(Type { name, first: self.index()?, empty: self.index()? })
    }

    fn element(&mut self) -> Result<Element, Error> {
        let name = self.name()?;
        Ok(Element { name, first: self.index()?, type_id: self.index()? })
    }

    fn characters(&mut self) -> Result<Box<[char]>, Error> {
        let set = self.list(|from| {
            let character = char::from_u32(from.index()?);
            character.ok_or_else(|| from.malformed("not a character"))
        })?;
        Ok(set.into())
    }

    fn one_of<T: Copy>(&mut self, known: &[T]) -> Result<T, Error> {
        let at = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        known.get(at).copied().ok_or_else(|| self.malformed("an unknown value"))
    }

    fn coding(&mut self) -> Result<Coding, Error> {
        Ok(match self.number()? {
            0 => Coding::Base64,
            1 => Coding::Hex,
            2 => Coding::Boolean,
            3 => Coding::BooleanPattern,
            4 => Coding::Decimal,
            5 => Coding::Float,
            6 => Coding::Integer,
            7 => Coding::Unsigned,
            8 => {
                let mut lower = [0; 16];
                lower.copy_from_slice(self.take(16)?);
                let bits = u8::try_from(self.number()?).unwrap_or(u8::MAX);
                Coding::Bounded { lower: i128::from_le_bytes(lower), bits }
            }
            9 => Coding::DateTime(self.one_of(&DATE_TIMES)?),
            10 => Coding::String,
            11 => Coding::Restricted(self.characters()?),
            12 => {
                let values = self.list(Self::text)?.into();
                Coding::Enumeration { values, item: self.index()? }
            }
            13 => Coding::List(self.index()?),
            _ => return Err(self.malformed("an unknown coding")),
        })
    }

    fn datatype(&mut self) -> Result<Datatype, Error> {
        let coding = self.coding()?;
        let lexical = if self.flag()? { Some(self.characters()?) } else { None };
        let lineage = self.list(Self::name)?.into();
        Ok(Datatype { coding, lexical, lineage, white_space: self.one_of(&WHITE_SPACES)? })
    }
}
