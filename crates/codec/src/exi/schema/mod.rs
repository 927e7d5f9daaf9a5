//! From an XML Schema to the grammars of EXI (EXI §8.5).
//!
//! [`Schema::parse`] reads documents of XML Schema 1.0 into components; [`Schema::grammars`] makes
//! of them the grammars for a choice of options, with their event codes. What cannot change an
//! event code or a coding is read over: identity constraints, defaults, facets such as lengths.
//!
//! ```
//! use longwire_codec::{Limits, exi};
//! let xsd = br#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
//!   <xs:element name="track"><xs:complexType><xs:sequence>
//!     <xs:element name="speed" type="xs:unsignedByte" maxOccurs="unbounded"/>
//!   </xs:sequence></xs:complexType></xs:element>
//! </xs:schema>"#;
//! let document = exi::schema::Document { location: "track.xsd", bytes: xsd };
//! let limits = Limits::default();
//! let schema = exi::Schema::parse(&[document], &mut |_, _| None, &limits)?;
//! let grammars = schema.grammars(&exi::Options::default(), &limits)?;
//! assert_eq!(grammars.elements.len(), 2);
//! assert_eq!(exi::Grammars::from_bytes(&grammars.to_bytes(), &limits)?, grammars);
//! # Ok::<(), longwire_codec::Error>(())
//! ```

mod built_in;
mod cache;
mod charset;
mod compile;
mod content;
mod datatypes;
mod derive;
mod fragment;
mod load;
mod model;
mod names;
mod resolve;
mod strings;
mod substitutions;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeSet;

use super::Options;
use super::grammar::Grammars;
use crate::{Error, Limits};
use load::{NodeRef, Sources};
use names::{Text, Texts};

/// What errors call this.
const CODEC: &str = "xsd";
/// The namespace of XML Schema.
pub(super) const XSD: &str = "http://www.w3.org/2001/XMLSchema";
/// The namespace of the prefix `xml`.
const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// The namespace of `xsi:type` and `xsi:nil`.
const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// The attributes of the prefix `xml` (XML 1.0 §2.10 and §2.12, XML Base §3, xml:id §4), for
/// schemas that import their namespace where the caller has no document for it.
const XML_NAMESPACE: &str = r#"<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema"
  targetNamespace="http://www.w3.org/XML/1998/namespace">
<s:attribute name="lang"><s:simpleType><s:union memberTypes="s:language s:string"/></s:simpleType>
</s:attribute>
<s:attribute name="space"><s:simpleType><s:restriction base="s:NCName">
<s:enumeration value="default"/><s:enumeration value="preserve"/>
</s:restriction></s:simpleType></s:attribute>
<s:attribute name="base" type="s:anyURI"/>
<s:attribute name="id" type="s:ID"/>
<s:attributeGroup name="specialAttrs"><s:attribute ref="xml:base"/><s:attribute ref="xml:lang"/>
<s:attribute ref="xml:space"/><s:attribute ref="xml:id"/></s:attributeGroup>
</s:schema>"#;

/// Asks the caller for a document, by location and namespace.
pub type Resolve<'a> = dyn FnMut(&str, Option<&str>) -> Option<Vec<u8>> + 'a;

/// A document of a schema.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Where it is: what relative locations in it are relative to, and how messages call it.
    pub location: &'a str,
    /// The document itself.
    pub bytes: &'a [u8],
}

/// The components of a schema.
#[derive(Clone, Debug)]
pub struct Schema {
    model: model::Model,
    texts: Texts,
    targets: BTreeSet<Text>,
}

impl Schema {
    /// Reads documents, and those that they include, import or redefine (XML Schema Part 1 §4.2).
    ///
    /// `resolve` is asked for each of these by its location, joined to that of the document that
    /// refers to it, and its namespace; for an import without a location, by the namespace alone.
    /// `None` is an error, but where an import has no location and nothing refers into it.
    ///
    /// Errors: [`Error::Malformed`] with the document and the name, where it is not a schema or
    /// something in it is not defined; [`Error::Limit`] where it is larger than `message_bytes` or
    /// deeper than `depth`.
    pub fn parse(
        documents: &[Document<'_>],
        resolve: &mut Resolve<'_>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let mut sources = Sources::read(documents, resolve, limits)?;
        let model = resolve::resolve(&mut sources, limits)?;
        Ok(Self { model, targets: sources.targets(), texts: sources.texts })
    }

    /// The built-in types alone (EXI §5.4, schemaId is empty).
    pub fn built_in() -> Self {
        let mut texts = Texts::new();
        let model = built_in::model(&mut texts);
        Self { model, texts, targets: BTreeSet::new() }
    }

    /// The grammars for some options: `strict`, `fragment`, `preserve` and `self_contained` are
    /// looked at. Where `strict` is set, what it rules out is taken as not set (EXI §5.4).
    ///
    /// Errors: [`Error::Limit`] where the grammars are over `table_bytes`.
    pub fn grammars(&self, options: &Options, limits: &Limits) -> Result<Grammars, Error> {
        compile::compile(self, options, limits)
    }
}

impl Grammars {
    /// The grammars of the built-in types alone (EXI §5.4, schemaId is empty).
    ///
    /// Errors: [`Error::Limit`] where `table_bytes` is smaller than some 100 KiB.
    pub fn built_in(options: &Options, limits: &Limits) -> Result<Self, Error> {
        Schema::built_in().grammars(options, limits)
    }
}

/// An error at a place of a document.
fn fault(sources: &Sources, place: NodeRef, what: String) -> Error {
    let what = located(sources, place, &what);
    Error::Malformed { codec: CODEC, offset: sources.node(place).offset, what }
}

fn located(sources: &Sources, place: NodeRef, what: &str) -> String {
    format!("{}: {what}", sources.source(place).location)
}

/// What is left of [`Limits::table_bytes`], in bytes and in steps.
#[derive(Debug)]
struct Budget {
    bytes: usize,
    steps: usize,
}

impl Budget {
    fn new(limits: &Limits) -> Self {
        Self { bytes: limits.table_bytes, steps: limits.table_bytes }
    }

    fn over() -> Error {
        let what = "the grammars of the schema are over table_bytes";
        Error::Limit { codec: CODEC, what: what.to_owned() }
    }

    /// Memory that is about to be used.
    fn take(&mut self, bytes: usize) -> Result<(), Error> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(Self::over)?;
        Ok(())
    }

    /// Work that leaves nothing behind.
    fn work(&mut self, steps: usize) -> Result<(), Error> {
        self.steps = self.steps.checked_sub(steps).ok_or_else(Self::over)?;
        Ok(())
    }

    /// The index of what is pushed next.
    fn index(&self, length: usize) -> Result<u32, Error> {
        u32::try_from(length).map_err(|_| Self::over())
    }
}
