//! How the values of a datatype are coded once the options are known: lexical values (EXI
//! §7.1.10.1) and the datatype representation map (EXI §7.4).

use super::{
    Options,
    grammar::{Coding, Datatype, DateTime, Grammars, QName},
    schema::XSD,
};

/// Namespace of EXI's own names.
pub(crate) const EXI_URI: &str = "http://www.w3.org/2009/exi";

/// Characters of a boolean (EXI table 7-2).
pub(crate) const BOOLEAN: [char; 14] =
    ['\t', '\n', '\r', ' ', '0', '1', 'a', 'e', 'f', 'l', 'r', 's', 't', 'u'];

/// The datatypes as they are coded, or `None` if that is as the schema says.
pub(crate) fn coded(grammars: &Grammars, options: &Options) -> Option<Vec<Datatype>> {
    if !options.preserve.lexical && options.datatype_map.is_empty() {
        return None;
    }
    let change = |datatype: &Datatype| {
        let coding = if options.preserve.lexical {
            match &datatype.lexical {
                Some(set) => Coding::Restricted(set.clone()),
                None => Coding::String,
            }
        } else {
            mapped(datatype, grammars, options).unwrap_or_else(|| datatype.coding.clone())
        };
        Datatype { coding, ..datatype.clone() }
    };
    Some(grammars.datatypes.iter().map(change).collect())
}

/// The coding that the map gives to a datatype by its own name or its nearest ancestor's.
fn mapped(datatype: &Datatype, grammars: &Grammars, options: &Options) -> Option<Coding> {
    let is = |name: &QName, [uri, local]: &[String; 2]| {
        grammars.uris.get(name.uri as usize).is_some_and(|found| {
            found.uri == *uri && found.locals.get(name.local as usize) == Some(local)
        })
    };
    // EXI §7.4: an enumeration stays one unless the map names a type that enumerates. Those are
    // the ancestors before the one that the values are of.
    let lineage = match &datatype.coding {
        Coding::Enumeration { item, .. } => {
            let rest = grammars.datatypes.get(*item as usize).map_or(0, |item| item.lineage.len());
            let count = datatype.lineage.len().saturating_sub(rest);
            datatype.lineage.get(..count)?
        }
        _ => &datatype.lineage,
    };
    // The nearest type that has a representation counts, be it the one that it has anyway.
    let map = &options.datatype_map;
    let to = lineage.iter().find_map(|name| {
        let mapped = map.iter().find(|(from, _)| is(name, from)).map(|(_, to)| Some(to));
        mapped.or_else(|| has_own(name, grammars).then_some(None))
    })??;
    if to[0] != EXI_URI {
        return None;
    }
    Some(match to[1].as_str() {
        "base64Binary" => Coding::Base64,
        "hexBinary" => Coding::Hex,
        "boolean" => Coding::Boolean,
        "decimal" => Coding::Decimal,
        "double" => Coding::Float,
        "integer" => Coding::Integer,
        "string" => Coding::String,
        "dateTime" => Coding::DateTime(DateTime::DateTime),
        "date" => Coding::DateTime(DateTime::Date),
        "time" => Coding::DateTime(DateTime::Time),
        "gYearMonth" => Coding::DateTime(DateTime::YearMonth),
        "gMonthDay" => Coding::DateTime(DateTime::MonthDay),
        "gYear" => Coding::DateTime(DateTime::Year),
        "gMonth" => Coding::DateTime(DateTime::Month),
        "gDay" => Coding::DateTime(DateTime::Day),
        _ => return None,
    })
}

/// Whether a type is one that has a representation of its own.
fn has_own(name: &QName, grammars: &Grammars) -> bool {
    let uri = grammars.uris.get(name.uri as usize).filter(|uri| uri.uri == XSD);
    let local = uri.and_then(|uri| uri.locals.get(name.local as usize));
    local.is_some_and(|local| representation(local).is_some())
}

/// The representation that a type of XML Schema has by itself (EXI table 7-1).
pub(crate) fn representation(local: &str) -> Option<&str> {
    match local {
        "float" => Some("double"),
        "anySimpleType" => Some("string"),
        "base64Binary" | "hexBinary" | "boolean" | "decimal" | "double" | "integer" | "string"
        | "dateTime" | "time" | "date" | "gYearMonth" | "gYear" | "gMonthDay" | "gDay"
        | "gMonth" => Some(local),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::exi::{Schema, schema::Document};

    #[test]
    fn enumerations_stay_unless_an_enumeration_is_mapped() {
        let xsd = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'>\
            <xs:simpleType name='a'><xs:restriction base='xs:date'>\
            <xs:enumeration value='2001-01-01'/></xs:restriction></xs:simpleType>\
            <xs:simpleType name='b'><xs:restriction base='a'/></xs:simpleType></xs:schema>";
        let document = Document { location: "x", bytes: xsd.as_bytes() };
        let limits = Limits::default();
        let schema = Schema::parse(&[document], &mut |_, _| None, &limits).unwrap();
        let codings = |from: &str, uri: &str| {
            let name = |uri: &str, local: &str| [uri.to_owned(), local.to_owned()];
            let datatype_map = vec![(name(uri, from), name(EXI_URI, "string"))];
            let options = Options { datatype_map, ..Options::default() };
            let grammars = schema.grammars(&options, &limits).unwrap();
            let made = coded(&grammars, &options).unwrap();
            let count = |wanted: fn(&Coding) -> bool| {
                made.iter().filter(|datatype| wanted(&datatype.coding)).count()
            };
            (
                count(|coding| matches!(coding, Coding::Enumeration { .. })),
                count(|coding| *coding == Coding::DateTime(DateTime::Date)),
            )
        };
        assert_eq!(codings("date", "http://www.w3.org/2001/XMLSchema"), (2, 0));
        assert_eq!(codings("a", ""), (0, 1));
        assert_eq!(codings("b", ""), (1, 1));
    }

    #[test]
    fn what_has_a_representation_of_its_own_keeps_it() {
        // EXI §7.4: int has its nearest representation from integer, not from decimal.
        let limits = Limits::default();
        let string_for = |from: &str| {
            let name = |uri: &str, local: &str| [uri.to_owned(), local.to_owned()];
            let datatype_map = vec![(name(XSD, from), name(EXI_URI, "string"))];
            let options = Options { datatype_map, ..Options::default() };
            let grammars = Grammars::built_in(&options, &limits).unwrap();
            let made = coded(&grammars, &options).unwrap();
            ["int", "integer", "decimal", "double"].map(|local| {
                let is = |one: &&Datatype| {
                    let name = one.lineage.first().unwrap();
                    grammars.uris[name.uri as usize].locals[name.local as usize] == local
                };
                made.iter().find(is).unwrap().coding == Coding::String
            })
        };
        assert_eq!(string_for("decimal"), [false, false, true, false]);
        assert_eq!(string_for("integer"), [true, true, false, false]);
        assert_eq!(string_for("anySimpleType"), [false; 4]);
    }
}
