//! flat table: the tModels that are there from the start: those of UDDI v3.0.2 §11, of the OASIS
//! technical note on WSDL (v2.0.2 §2), and this registry's own.

use std::time::Duration;

use super::super::model::{Bag, Body, Entity, Reference, TModel, Text};
use super::super::quality::TMODEL_LATENCY;

/// Who owns them: nobody can log in as that.
pub(crate) const OWNER: &str = "*registry";
/// The types of tModels (UDDI v3.0.2 §11.1.1).
pub(crate) const TYPES: &str = "uddi:uddi.org:categorization:types";
/// Keywords whose names count as well (UDDI v3.0.2 §11.1.3).
pub(crate) const KEYWORDS: &str = "uddi:uddi.org:categorization:general_keywords";
/// The kind of a service, as `longwire find --kind` asks for it.
pub(crate) const KIND: &str = "uddi:longwire.example:kind";
/// How long a service is kept, in seconds.
pub(crate) const LEASE: &str = "uddi:longwire.example:lease";
/// The business of a publisher that named none.
pub(crate) const HOME: &str = "uddi:longwire.example:home";

/// Key, name, what it is, and its types.
type Row = (&'static str, &'static str, &'static str, &'static [&'static str]);

const ROWS: &[Row] = &[
    (TYPES, "uddi-org:types", "Types of tModels", &["categorization", "checked"]),
    (KEYWORDS, "uddi-org:general_keywords", "Keywords with names", &["categorization"]),
    (
        "uddi:uddi.org:categorization:nodes",
        "uddi-org:nodes",
        "Marks the business of a node",
        &["categorization"],
    ),
    (
        "uddi:uddi.org:identifier:isreplacedby",
        "uddi-org:isReplacedBy",
        "The entity that replaces this one",
        &["identifier"],
    ),
    (
        "uddi:uddi.org:categorization:owningbusiness",
        "uddi-org:owningBusiness",
        "The business that owns a tModel",
        &["categorization"],
    ),
    (
        "uddi:uddi.org:relationships",
        "uddi-org:relationships",
        "How businesses are related",
        &["relationship"],
    ),
    (
        "uddi:uddi.org:keygenerator",
        "uddi-org:keyGenerator",
        "The key generator of the standard's keys",
        &["keyGenerator"],
    ),
    (
        "uddi:uddi.org:v3_inquiry",
        "uddi-org:inquiry_v3",
        "Inquiry of UDDI v3",
        &["wsdlSpec", "soapSpec"],
    ),
    (
        "uddi:uddi.org:v3_publication",
        "uddi-org:publication_v3",
        "Publication of UDDI v3",
        &["wsdlSpec", "soapSpec"],
    ),
    (
        "uddi:uddi.org:v3_security",
        "uddi-org:security_v3",
        "Security policy of UDDI v3",
        &["wsdlSpec", "soapSpec"],
    ),
    ("uddi:uddi.org:transport:http", "uddi-org:http", "HTTP", &["transport"]),
    ("uddi:uddi.org:transport:smtp", "uddi-org:smtp", "Electronic mail", &["transport"]),
    ("uddi:uddi.org:transport:ftp", "uddi-org:ftp", "File transfer", &["transport"]),
    ("uddi:uddi.org:protocol:soap", "uddi-org:soap", "SOAP 1.1", &["protocol"]),
    ("uddi:uddi.org:protocol:http", "uddi-org:protocol:http", "HTTP as protocol", &["protocol"]),
    (
        "uddi:uddi.org:wsdl:types",
        "uddi-org:wsdl:types",
        "Which part of a WSDL an entity is",
        &["unchecked", "categorization"],
    ),
    (
        "uddi:uddi.org:xml:namespace",
        "uddi-org:xml:namespace",
        "The namespace of a part of a WSDL",
        &["unchecked", "categorization"],
    ),
    (
        "uddi:uddi.org:xml:localname",
        "uddi-org:xml:localName",
        "The local name of a part of a WSDL",
        &["unchecked", "categorization"],
    ),
    (
        "uddi:uddi.org:wsdl:porttypereference",
        "uddi-org:wsdl:portTypeReference",
        "The portType of a binding",
        &["categorization", "checked"],
    ),
    (
        "uddi:uddi.org:wsdl:address",
        "uddi-org:wsdl:address",
        "The address is in the WSDL",
        &["unchecked"],
    ),
    (
        "uddi:uddi.org:wsdl:categorization:protocol",
        "uddi-org:wsdl:categorization:protocol",
        "The protocol of a binding",
        &["categorization", "checked"],
    ),
    (
        "uddi:uddi.org:wsdl:categorization:transport",
        "uddi-org:wsdl:categorization:transport",
        "The transport of a binding",
        &["categorization", "checked"],
    ),
    (
        "uddi:uddi.org:sortorder:binarysort",
        "uddi-org:binarySort",
        "Sorting by the numbers of characters",
        &["sortOrder"],
    ),
    (
        "uddi:longwire.example:keygenerator",
        "longwire:keyGenerator",
        "The key generator of this registry's keys",
        &["keyGenerator"],
    ),
    (KIND, "longwire:kind", "The kind of a service", &["categorization", "unchecked"]),
    (LEASE, "longwire:lease", "Seconds that a service is kept", &["categorization", "checked"]),
    (
        TMODEL_LATENCY,
        "longwire:qos-latency",
        "Rungs of latency as measured: le-N, firm-le-N, hard-le-N in us",
        &["categorization", "checked"],
    ),
    (HOME, "longwire:home", "The business of a publisher that named none", &["categorization"]),
];

/// All of them.
pub(super) fn entities() -> Vec<Entity> {
    let entity = |(key, name, about, types): &Row| {
        let of_type = |value: &&str| Reference::new(TYPES, "", *value);
        let tmodel = TModel {
            is_deleted: false,
            name: Text::plain(*name),
            descriptions: vec![Text::plain(*about)],
            overviews: Vec::new(),
            identifiers: Vec::new(),
            categories: Bag { references: types.iter().map(of_type).collect(), groups: vec![] },
        };
        Entity {
            key: (*key).into(),
            owner: OWNER.into(),
            created: Duration::ZERO,
            modified: Duration::ZERO,
            modified_below: Duration::ZERO,
            lease: None,
            until: None,
            body: Body::TModel(tmodel),
        }
    };
    ROWS.iter().map(entity).collect()
}
