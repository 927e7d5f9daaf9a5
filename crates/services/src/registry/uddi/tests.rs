use std::collections::BTreeSet;

use super::super::element::Element;
use super::schema::{Content, RULES, find};
use super::*;

fn envelope(message: &str) -> String {
    format!(
        "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Body>{message}\
         </e:Body></e:Envelope>"
    )
}

fn v3(message: &str) -> String {
    envelope(&message.replacen('>', " xmlns='urn:uddi-org:api_v3'>", 1))
}

/// The fault of a document, if it is one.
fn refused(document: &str) -> Option<String> {
    request(document).err().map(|one| fault(&one))
}

#[test]
fn messages_are_read_and_white_space_is_collapsed() {
    let message = request(&v3("<find_service><name xml:lang='en'> a \n b </name></find_service>"));
    let message = message.unwrap();
    let name = message.child("name").unwrap();
    assert_eq!((name.text.as_str(), name.lang()), ("a b", Some("en")));
    assert_eq!(message.attributes, [], "declarations of namespaces are none");
}

#[test]
fn what_is_no_message_is_a_plain_fault() {
    let entity = "<!DOCTYPE a [<!ENTITY b 'c'>]>";
    for (document, expected) in [
        (String::new(), "no element"),
        ("<a/>".to_owned(), "no envelope"),
        (format!("{entity}{}", v3("<find_service></find_service>")), "DOCTYPE"),
        (v3("<bogus></bogus>"), "no element of UDDI"),
        (v3("<find_service><bogus/></find_service>"), "does not belong"),
        (v3("<find_service><categoryBag/></find_service>"), "is empty"),
        (v3("<find_service bogus='1'></find_service>"), "has no attribute"),
        (v3("<find_service maxRows='x'></find_service>"), "no whole number"),
        (v3("<get_serviceDetail></get_serviceDetail>"), "has no serviceKey"),
        (v3("<get_authToken userID='a'></get_authToken>"), "has no attribute"),
        (v3("<find_service>text</find_service>"), "text in"),
        (v3("<find_tModel><name>a</name><name>b</name></find_tModel>"), "does not belong"),
        (v3("<save_binding><bindingTemplate></bindingTemplate></save_binding>"), "accessPoint or"),
        (envelope("<find_service xmlns='urn:other'/>"), "not of namespace"),
        (envelope(""), "one Body with one message"),
    ] {
        let fault = refused(&document).unwrap_or_else(|| panic!("{document}"));
        assert!(fault.contains("<faultcode>soap:Client</faultcode>"), "{fault}");
        assert!(!fault.contains("dispositionReport"), "{fault}");
        assert!(fault.contains(expected), "{expected}: {fault}");
    }
}

#[test]
fn what_has_a_number_is_in_a_report() {
    let long = "x".repeat(256);
    for (document, expected) in [
        (v3(&format!("<find_service><name>{long}</name></find_service>")), "10020"),
        (v3("<find_service><name> </name></find_service>"), "20210"),
        (v3("<find_service><name xml:lang='not a language'>a</name></find_service>"), "20210"),
        (envelope("<find_service xmlns='urn:uddi-org:api_v2'/>"), "10040"),
        (v3(&format!("<find_service>{}</find_service>", "<name>a</name>".repeat(50_001))), "30110"),
    ] {
        let fault = refused(&document).unwrap();
        assert!(fault.contains(&format!("errno=\"{expected}\"")), "{expected}: {fault}");
        assert!(Element::parse(&fault).is_ok());
    }
    let exact = format!("<find_service><name>{}</name></find_service>", "é".repeat(255));
    assert_eq!(refused(&v3(&exact)), None, "characters are counted, not bytes");
}

#[test]
fn other_versions_of_soap_and_headers_are_recognized() {
    let other = envelope("<a/>").replace("http://schemas.xmlsoap.org/soap/envelope/", "urn:x");
    assert!(refused(&other).unwrap().contains("soap:VersionMismatch"));
    let with = |header: &str| {
        v3("<find_service></find_service>").replace("<e:Body>", &format!("{header}<e:Body>"))
    };
    let block = "<e:Header><h:a xmlns:h='urn:h' e:mustUnderstand='1' AT/></e:Header>";
    assert!(refused(&with(&block.replace("AT", ""))).unwrap().contains("soap:MustUnderstand"));
    assert_eq!(refused(&with(&block.replace("AT", "e:actor='urn:other'"))), None);
    assert_eq!(refused(&with(&block.replace("='1'", "='0'").replace("AT", ""))), None);
}

#[test]
fn the_table_has_all_that_it_names() {
    let mut names = BTreeSet::new();
    for rule in RULES {
        assert!(names.insert(rule.name), "{} is there twice", rule.name);
        if let Content::Parts(parts) | Content::Some(parts) = rule.content {
            for name in parts.iter().flat_map(|part| part.names) {
                assert!(find(name).is_some(), "{name} in {}", rule.name);
            }
        }
    }
    for set in [Set::Inquiry, Set::Publication, Set::Security] {
        for (operation, answer) in set.operations() {
            assert!(find(operation).is_some(), "{operation}");
            assert!(answer.is_none_or(|answer| find(answer).is_some()), "{answer:?}");
            assert!(Call::of(operation).is_ok(), "{operation}");
        }
    }
    assert_eq!(Set::Inquiry.operations().len(), 9);
}

#[test]
fn the_wsdl_is_well_formed_and_has_the_operations() {
    for set in [Set::Inquiry, Set::Publication, Set::Security] {
        let text = wsdl(set, "http://127.0.0.1:1/uddi?a&b");
        let document = Element::parse(&text).unwrap();
        let port_type = document.child("portType").unwrap();
        assert_eq!(port_type.children.len(), set.operations().len());
        let port = document.child("service").unwrap().child("port").unwrap();
        let address = port.child("address").unwrap().attribute("location");
        assert_eq!(address, Some("http://127.0.0.1:1/uddi?a&b"));
    }
}

#[test]
fn the_wsdl_imports_nothing_from_elsewhere() {
    let document = Element::parse(&wsdl(Set::Inquiry, "http://127.0.0.1:1/uddi")).unwrap();
    let schema = document.child("types").unwrap().child("schema").unwrap();
    let import = schema.child("import").unwrap();
    let here = format!("http://127.0.0.1:1/uddi?{LANGUAGE_QUERY}");
    assert_eq!(import.attribute("schemaLocation"), Some(here.as_str()));
    let imported = Element::parse(LANGUAGE_SCHEMA).unwrap();
    assert_eq!(imported.attribute("targetNamespace"), import.attribute("namespace"));
    assert_eq!(imported.child("attribute").unwrap().attribute("name"), Some("lang"));
}

#[test]
fn an_answer_of_others_is_read_with_what_it_says_beside() {
    let message = "<u:serviceDetail xmlns:u='urn:uddi-org:api_v3' \
                   xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:type='x' \
                   truncated='false'>\
                   <u:businessService serviceKey='UDDI:A' businessKey='uddi:b'><u:name>n</u:name>\
                   <s:Signature xmlns:s='http://www.w3.org/2000/09/xmldsig#'/></u:businessService>\
                   </u:serviceDetail>";
    let detail = answer(&envelope(message)).unwrap();
    let services = services_of(&detail);
    assert_eq!((services.len(), services[0].0.as_str()), (1, "uddi:a"));
    let refusal = super::super::refusal::Refusal::new(
        super::super::refusal::Reason::InvalidKeyPassed,
        "no such key",
    );
    let line = answer(&fault(&Fault::from(refusal))).unwrap_err();
    assert_eq!(line, "E_invalidKeyPassed 10210: no such key");
}
