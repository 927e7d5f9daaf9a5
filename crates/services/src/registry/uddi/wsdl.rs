//! The description of each API set in WSDL 1.1, with the schema of what is served, made of the
//! table that requests are checked by.

use std::fmt::Write as _;

use super::schema::{Attr, Content, Kind, NAMESPACE, Part, RULES, Rule};
use crate::xml::escape;

/// An API set (UDDI v3.0.2 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    Inquiry,
    Publication,
    Security,
}

impl Set {
    /// The name that port type, binding and service have in them.
    fn name(self) -> &'static str {
        match self {
            Self::Inquiry => "Inquiry",
            Self::Publication => "Publication",
            Self::Security => "Security",
        }
    }

    /// Its operations, and the element of each one's answer; none for an empty message.
    pub(super) fn operations(self) -> &'static [(&'static str, Option<&'static str>)] {
        match self {
            Self::Inquiry => &[
                ("find_binding", Some("bindingDetail")),
                ("find_business", Some("businessList")),
                ("find_service", Some("serviceList")),
                ("find_tModel", Some("tModelList")),
                ("get_bindingDetail", Some("bindingDetail")),
                ("get_businessDetail", Some("businessDetail")),
                ("get_operationalInfo", Some("operationalInfos")),
                ("get_serviceDetail", Some("serviceDetail")),
                ("get_tModelDetail", Some("tModelDetail")),
            ],
            Self::Publication => &[
                ("delete_binding", None),
                ("delete_business", None),
                ("delete_service", None),
                ("delete_tModel", None),
                ("save_binding", Some("bindingDetail")),
                ("save_business", Some("businessDetail")),
                ("save_service", Some("serviceDetail")),
                ("save_tModel", Some("tModelDetail")),
            ],
            Self::Security => &[("discard_authToken", None), ("get_authToken", Some("authToken"))],
        }
    }

    /// The operations that belong to it, by the name of the message.
    pub(crate) fn has(self, name: &str) -> bool {
        self.operations().iter().any(|(operation, _)| *operation == name)
    }
}

/// The WSDL of a set at an address.
pub(crate) fn wsdl(set: Set, address: &str) -> String {
    let name = set.name();
    let port_types = "urn:uddi-org:api_v3_portType";
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <definitions xmlns=\"http://schemas.xmlsoap.org/wsdl/\" \
         xmlns:soap=\"http://schemas.xmlsoap.org/wsdl/soap/\" xmlns:tns=\"{port_types}\" \
         xmlns:uddi=\"{NAMESPACE}\" targetNamespace=\"{port_types}\">\n<types>\n{}</types>\n\
         <message name=\"fault\"><part name=\"body\" element=\"uddi:dispositionReport\"/>\
         </message>\n",
        schema(address)
    );
    for (operation, answer) in set.operations() {
        let part = |element: &str| format!("<part name=\"body\" element=\"uddi:{element}\"/>");
        let answer = answer.map(part).unwrap_or_default();
        let _ = writeln!(out, "<message name=\"{operation}\">{}</message>", part(operation));
        let _ = writeln!(out, "<message name=\"{operation}_answer\">{answer}</message>");
    }
    let _ = writeln!(out, "<portType name=\"UDDI_{name}_PortType\">");
    for (operation, _) in set.operations() {
        let _ = writeln!(
            out,
            "<operation name=\"{operation}\"><input message=\"tns:{operation}\"/>\
             <output message=\"tns:{operation}_answer\"/>\
             <fault name=\"error\" message=\"tns:fault\"/></operation>"
        );
    }
    let _ = writeln!(
        out,
        "</portType>\n\
         <binding name=\"UDDI_{name}_SoapBinding\" type=\"tns:UDDI_{name}_PortType\">\n\
         <soap:binding transport=\"http://schemas.xmlsoap.org/soap/http\"/>"
    );
    for (operation, _) in set.operations() {
        let _ = writeln!(
            out,
            "<operation name=\"{operation}\"><soap:operation soapAction=\"{operation}\" \
             style=\"document\"/><input><soap:body use=\"literal\"/></input>\
             <output><soap:body use=\"literal\"/></output>\
             <fault name=\"error\"><soap:fault name=\"error\" use=\"literal\"/></fault></operation>"
        );
    }
    out.push_str("</binding>\n");
    let _ = write!(
        out,
        "<service name=\"UDDI_{name}_Service\"><port name=\"UDDI_{name}_Port\" \
         binding=\"tns:UDDI_{name}_SoapBinding\"><soap:address location=\""
    );
    escape(address, &mut out);
    out.push_str("\"/></port></service>\n</definitions>\n");
    out
}

/// The query, at the address of a set, of the schema that the others import.
pub(crate) const LANGUAGE_QUERY: &str = "xsd=xml";

/// `xml:lang` (XML 1.0 §2.12): served here, since a client that has only this network cannot ask
/// for the schema where it comes from.
pub(crate) const LANGUAGE_SCHEMA: &str = concat!(
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
    "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" ",
    "targetNamespace=\"http://www.w3.org/XML/1998/namespace\">\n",
    "<xs:attribute name=\"lang\"><xs:simpleType><xs:union memberTypes=\"xs:language\">",
    "<xs:simpleType><xs:restriction base=\"xs:string\"><xs:enumeration value=\"\"/>",
    "</xs:restriction></xs:simpleType></xs:union></xs:simpleType></xs:attribute>\n",
    "</xs:schema>\n"
);

/// The schema of all elements that are served at an address.
fn schema(address: &str) -> String {
    let mut out = format!(
        "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" xmlns:uddi=\"{NAMESPACE}\" \
         targetNamespace=\"{NAMESPACE}\" elementFormDefault=\"qualified\">\n\
         <xs:import namespace=\"http://www.w3.org/XML/1998/namespace\" schemaLocation=\""
    );
    escape(address, &mut out);
    let _ = writeln!(out, "?{LANGUAGE_QUERY}\"/>");
    RULES.iter().for_each(|rule| element(rule, &mut out));
    out.push_str("</xs:schema>\n");
    out
}

fn element(rule: &Rule, out: &mut String) {
    let name = rule.name;
    let simple = match rule.content {
        Content::Text(min, max, is_collapsed) => Some(text_type(min, max, is_collapsed)),
        Content::Int => Some(base("xs:int")),
        Content::Time => Some(base("xs:dateTime")),
        Content::Empty | Content::Parts(_) | Content::Some(_) => None,
    };
    match simple {
        Some(simple) if rule.attributes.is_empty() => {
            let _ = writeln!(out, "<xs:element name=\"{name}\">{simple}</xs:element>");
        }
        Some(simple) => {
            let named = simple.replacen("<xs:simpleType>", &simple_start(name), 1);
            let _ = writeln!(out, "{named}");
            let _ = write!(
                out,
                "<xs:element name=\"{name}\"><xs:complexType><xs:simpleContent>\
                 <xs:extension base=\"uddi:{name}_text\">"
            );
            rule.attributes.iter().for_each(|attr| attribute(attr, out));
            out.push_str("</xs:extension></xs:simpleContent></xs:complexType></xs:element>\n");
        }
        None => {
            let _ = write!(out, "<xs:element name=\"{name}\"><xs:complexType>");
            if let Content::Parts(parts) | Content::Some(parts) = rule.content {
                out.push_str("<xs:sequence>");
                parts.iter().for_each(|of| part(of, out));
                out.push_str("</xs:sequence>");
            }
            rule.attributes.iter().for_each(|attr| attribute(attr, out));
            out.push_str("</xs:complexType></xs:element>\n");
        }
    }
}

fn simple_start(name: &str) -> String {
    format!("<xs:simpleType name=\"{name}_text\">")
}

fn base(base: &str) -> String {
    format!("<xs:simpleType><xs:restriction base=\"{base}\"/></xs:simpleType>")
}

fn text_type(min: usize, max: usize, is_collapsed: bool) -> String {
    let space = if is_collapsed { "<xs:whiteSpace value=\"collapse\"/>" } else { "" };
    format!(
        "<xs:simpleType><xs:restriction base=\"xs:string\"><xs:minLength value=\"{min}\"/>\
         <xs:maxLength value=\"{max}\"/>{space}</xs:restriction></xs:simpleType>"
    )
}

fn part(part: &Part, out: &mut String) {
    let most = if part.is_many { "unbounded" } else { "1" };
    let bounds = format!("minOccurs=\"{}\" maxOccurs=\"{most}\"", part.min);
    match part.names {
        [name] => {
            let _ = write!(out, "<xs:element ref=\"uddi:{name}\" {bounds}/>");
        }
        names => {
            let _ = write!(out, "<xs:choice {bounds}>");
            for name in names {
                let _ = write!(out, "<xs:element ref=\"uddi:{name}\"/>");
            }
            out.push_str("</xs:choice>");
        }
    }
}

fn attribute(Attr(name, kind, is_required): &Attr, out: &mut String) {
    let needed = if *is_required { "required" } else { "optional" };
    let simple = match kind {
        Kind::Lang => {
            out.push_str("<xs:attribute ref=\"xml:lang\"/>");
            return;
        }
        Kind::Key => text_type(0, 255, true),
        Kind::Short(max) => text_type(0, *max, true),
        Kind::Free => base("xs:string"),
        Kind::Int => base("xs:int"),
        Kind::Bool => base("xs:boolean"),
    };
    let _ = write!(out, "<xs:attribute name=\"{name}\" use=\"{needed}\">{simple}</xs:attribute>");
}
