//! The tree of a value.

use std::borrow::Cow;

use bytes::Bytes;

use super::code;
use crate::Error;

/// A value of any type that the standard has (AMQP 1.0 Part 1 §1.6). Which of a type's encodings it
/// came in is not kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing (§1.6.1).
    Null,
    /// A truth value (§1.6.2).
    Bool(bool),
    /// 8 bits without a sign (§1.6.3).
    Ubyte(u8),
    /// 16 bits without a sign (§1.6.4).
    Ushort(u16),
    /// 32 bits without a sign (§1.6.5).
    Uint(u32),
    /// 64 bits without a sign (§1.6.6).
    Ulong(u64),
    /// 8 bits with a sign (§1.6.7).
    Byte(i8),
    /// 16 bits with a sign (§1.6.8).
    Short(i16),
    /// 32 bits with a sign (§1.6.9).
    Int(i32),
    /// 64 bits with a sign (§1.6.10).
    Long(i64),
    /// A binary32 (§1.6.11).
    Float(f32),
    /// A binary64 (§1.6.12).
    Double(f64),
    /// A decimal32, as its bytes (§1.6.13).
    Decimal32([u8; 4]),
    /// A decimal64, as its bytes (§1.6.14).
    Decimal64([u8; 8]),
    /// A decimal128, as its bytes (§1.6.15).
    Decimal128([u8; 16]),
    /// A character of Unicode (§1.6.16).
    Char(char),
    /// Milliseconds since 1970 (§1.6.17).
    Timestamp(i64),
    /// A UUID (§1.6.18).
    Uuid([u8; 16]),
    /// Bytes (§1.6.19).
    Binary(Bytes),
    /// Text (§1.6.20).
    String(String),
    /// A name of a constrained domain (§1.6.21).
    Symbol(Symbol),
    /// Values of any types in order (§1.6.22).
    List(Vec<Value>),
    /// Pairs of values; their order is kept (§1.6.23).
    Map(Map),
    /// Values of one type (§1.6.24).
    Array(Array),
    /// A value with what it means (§1.5).
    Described(Box<Described>),
}

/// Pairs of keys and values in the order in which they came.
pub type Map = Vec<(Value, Value)>;

/// A value with its descriptor (AMQP 1.0 Part 1 §1.5).
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// What the value means: a symbol or an ulong of a known domain.
    pub descriptor: Value,
    /// The value.
    pub value: Value,
}

impl Value {
    /// A value with its descriptor.
    #[must_use]
    pub fn described(descriptor: Self, value: Self) -> Self {
        Self::Described(Box::new(Described { descriptor, value }))
    }

    /// A symbol that the program knows.
    #[must_use]
    pub const fn symbol(name: &'static str) -> Self {
        Self::Symbol(Symbol::new(name))
    }

    /// A string.
    #[must_use]
    pub fn string(text: &str) -> Self {
        Self::String(text.to_owned())
    }

    /// The text of a string or a symbol.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Symbol(symbol) => Some(symbol.as_str()),
            _ => None,
        }
    }

    /// The constructor that elements of an array have for this value's type, in its widest
    /// encoding.
    fn array_code(&self) -> u8 {
        match self {
            Self::Null => code::NULL,
            Self::Bool(_) => code::BOOLEAN,
            Self::Ubyte(_) => code::UBYTE,
            Self::Ushort(_) => code::USHORT,
            Self::Uint(_) => code::UINT,
            Self::Ulong(_) => code::ULONG,
            Self::Byte(_) => code::BYTE,
            Self::Short(_) => code::SHORT,
            Self::Int(_) => code::INT,
            Self::Long(_) => code::LONG,
            Self::Float(_) => code::FLOAT,
            Self::Double(_) => code::DOUBLE,
            Self::Decimal32(_) => code::DECIMAL_32,
            Self::Decimal64(_) => code::DECIMAL_64,
            Self::Decimal128(_) => code::DECIMAL_128,
            Self::Char(_) => code::CHAR,
            Self::Timestamp(_) => code::TIMESTAMP,
            Self::Uuid(_) => code::UUID,
            Self::Binary(_) => code::BINARY_32,
            Self::String(_) => code::STRING_32,
            Self::Symbol(_) => code::SYMBOL_32,
            Self::List(_) => code::LIST_32,
            Self::Map(_) => code::MAP_32,
            Self::Array(_) => code::ARRAY_32,
            Self::Described(_) => code::DESCRIBED,
        }
    }
}

/// A symbol: ASCII text of a constrained domain (AMQP 1.0 Part 1 §1.6.21).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol(Cow<'static, str>);

impl Symbol {
    /// One that the program knows, which is ASCII.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// One of any text. `Error::Caller` if that is not ASCII.
    pub fn of(text: &str) -> Result<Self, Error> {
        if text.is_ascii() {
            Ok(Self(Cow::Owned(text.to_owned())))
        } else {
            Err(Error::Caller { what: "a symbol that is not ASCII" })
        }
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Values of one type, described alike (AMQP 1.0 Part 1 §1.4, §1.6.24).
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Descriptors that all elements have, the outermost first.
    descriptors: Vec<Value>,
    /// The widest encoding of the elements' type, also where there is none.
    code: u8,
    items: Vec<Value>,
}

impl Array {
    /// Elements of one type, which `Error::Caller` says where they are not; without any it is one
    /// of nulls.
    pub fn new(items: Vec<Value>) -> Result<Self, Error> {
        let code = items.first().map_or(code::NULL, Value::array_code);
        let is_alike = code != code::DESCRIBED;
        if is_alike && items.iter().all(|item| item.array_code() == code) {
            Ok(Self { descriptors: Vec::new(), code, items })
        } else {
            Err(Error::Caller { what: "an array of values of different types" })
        }
    }

    /// Symbols.
    #[must_use]
    pub fn of_symbols(items: &[Symbol]) -> Self {
        let items = items.iter().cloned().map(Value::Symbol).collect();
        Self { descriptors: Vec::new(), code: code::SYMBOL_32, items }
    }

    /// As it was read: `code` is the widest encoding of the items' type.
    pub(super) fn read(descriptors: Vec<Value>, code: u8, items: Vec<Value>) -> Self {
        Self { descriptors, code, items }
    }

    /// Its elements, without the descriptors that all of them have.
    #[must_use]
    pub fn items(&self) -> &[Value] {
        &self.items
    }

    /// Descriptors that all elements have, the outermost first.
    #[must_use]
    pub fn descriptors(&self) -> &[Value] {
        &self.descriptors
    }

    /// The constructor of its elements.
    pub(super) fn code(&self) -> u8 {
        self.code
    }
}
