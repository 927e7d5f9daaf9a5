use proptest::prelude::*;

use super::{Code, Fault, GET_TRACK, Version, answer, request, wsdl};
use crate::xml::Reader;

const BOTH: [Version; 2] = [Version::Soap11, Version::Soap12];

/// A message with this header and body content.
fn message(version: Version, header: &str, body: &str) -> String {
    let namespace = version.namespace();
    format!(
        "<e:Envelope xmlns:e='{namespace}' xmlns:t='urn:longwire:tracks:1'>{header}\
         <e:Body>{body}</e:Body></e:Envelope>"
    )
}

const CALL: &str = "<t:GetTrack><t:number>7</t:number></t:GetTrack>";

fn parse(document: &str, expected: Version) -> Result<(Version, usize), Fault> {
    super::parse(document, expected, &GET_TRACK)
}

fn refused(version: Version, document: &str) -> Fault {
    match parse(document, version) {
        Err(fault) => {
            Reader::new(&fault.to_xml()).check_rest().unwrap();
            fault
        }
        Ok(accepted) => panic!("{document}: {accepted:?}"),
    }
}

#[test]
fn what_our_client_writes_our_service_reads() {
    for version in BOTH {
        for number in [1, 22] {
            assert_eq!(parse(&request(version, number), version), Ok((version, number)));
        }
        Reader::new(&answer(version, "<x/>")).check_rest().unwrap();
    }
}

#[test]
fn headers_white_space_and_comments_are_passed_over() {
    let header = "\n<e:Header> <x:y xmlns:x='urn:x'><x:z>deep</x:z></x:y> </e:Header>\n";
    let body = "<!-- c --> <t:GetTrack>\n<t:number> 7 </t:number>\n</t:GetTrack> ";
    for version in BOTH {
        assert_eq!(parse(&message(version, header, body), version), Ok((version, 7)));
    }
}

#[test]
fn the_envelope_decides_the_version_not_the_media_type() {
    let document = message(Version::Soap12, "", CALL);
    assert_eq!(parse(&document, Version::Soap11), Ok((Version::Soap12, 7)));
}

#[test]
fn an_unknown_envelope_is_a_version_mismatch_in_the_version_of_the_media_type() {
    for document in [
        "<e:Envelope xmlns:e='urn:soap:9'><e:Body/></e:Envelope>",
        "<Envelope/>",
        "<html/>",
        "<e:Body xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'/>",
    ] {
        for version in BOTH {
            let fault = refused(version, document);
            assert_eq!((&fault.code, fault.version), (&Code::VersionMismatch, version));
            assert_eq!(fault.status(), 500);
        }
    }
    let xml = refused(Version::Soap12, "<html/>").to_xml();
    assert!(xml.contains("<soap:Upgrade><soap:SupportedEnvelope qname=\"e:Envelope\""), "{xml}");
    assert!(refused(Version::Soap11, "<html/>").to_xml().contains("soap:VersionMismatch"));
}

#[test]
fn mandatory_headers_for_us_are_not_understood() {
    let next11 = "http://schemas.xmlsoap.org/soap/actor/next";
    let next12 = "http://www.w3.org/2003/05/soap-envelope/role/next";
    let ultimate = "http://www.w3.org/2003/05/soap-envelope/role/ultimateReceiver";
    let cases = [
        (Version::Soap11, "e:mustUnderstand='1'".to_owned()),
        (Version::Soap11, format!("e:mustUnderstand='1' e:actor='{next11}'")),
        (Version::Soap12, "e:mustUnderstand='true'".to_owned()),
        (Version::Soap12, format!("e:mustUnderstand='1' e:role='{next12}'")),
        (Version::Soap12, format!("e:mustUnderstand='1' e:role='{ultimate}'")),
    ];
    for (version, attributes) in cases {
        let header =
            format!("<e:Header><x:Security xmlns:x='urn:x' {attributes}>s</x:Security></e:Header>");
        // Even with a body that is wrong: mandatory headers come first.
        for body in [CALL, "<t:GetTrack/>"] {
            let fault = refused(version, &message(version, &header, body));
            let expected = Code::MustUnderstand(vec![("urn:x".into(), "Security".into())]);
            assert_eq!((&fault.code, fault.status()), (&expected, 500));
        }
    }
    let header = "<e:Header><x:S xmlns:x='urn:&amp;x' e:mustUnderstand='1'/></e:Header>";
    let xml = refused(Version::Soap12, &message(Version::Soap12, header, CALL)).to_xml();
    let block = "<soap:NotUnderstood qname=\"h:S\" xmlns:h=\"urn:&amp;x\"/>";
    assert!(xml.contains(block), "{xml}");
}

#[test]
fn headers_that_are_optional_or_for_others_do_not_matter() {
    let cases = [
        (Version::Soap11, "e:mustUnderstand='0'"),
        (Version::Soap11, "e:mustUnderstand='1' e:actor='urn:other'"),
        (Version::Soap11, "mustUnderstand='1'"),
        (Version::Soap12, "e:mustUnderstand='false'"),
        (Version::Soap12, "e:mustUnderstand='true' e:role='urn:other'"),
        (
            Version::Soap12,
            "e:mustUnderstand='1' e:role='http://www.w3.org/2003/05/soap-envelope/role/none'",
        ),
    ];
    for (version, attributes) in cases {
        let header = format!("<e:Header><x:y xmlns:x='urn:x' {attributes}/></e:Header>");
        let document = message(version, &header, CALL);
        assert_eq!(parse(&document, version), Ok((version, 7)), "{attributes}");
    }
}

#[test]
fn a_list_of_blocks_not_understood_is_bounded() {
    let block = "<x:y xmlns:x='urn:x' e:mustUnderstand='1'/>";
    let header = format!("<e:Header>{}</e:Header>", block.repeat(500));
    let fault = refused(Version::Soap12, &message(Version::Soap12, &header, CALL));
    assert!(matches!(fault.code, Code::MustUnderstand(blocks) if blocks.len() == 8));
}

#[test]
fn faults_in_the_body_have_a_detail() {
    let cases = [
        ("", "empty"),
        ("<t:GetTrack/>", "no number"),
        ("<t:Drop/>", "no operation 'Drop'"),
        ("<GetTrack/>", "no operation"),
        ("<t:GetTrack><t:count>7</t:count></t:GetTrack>", "no parameter"),
        ("<t:GetTrack><t:number/></t:GetTrack>", "no track ''"),
        ("<t:GetTrack><t:number>0</t:number></t:GetTrack>", "no track '0'"),
        ("<t:GetTrack><t:number>23</t:number></t:GetTrack>", "1 to 22"),
        ("<t:GetTrack><t:number>-1</t:number></t:GetTrack>", "no track '-1'"),
        ("<t:GetTrack><t:number>7x</t:number></t:GetTrack>", "no track '7x'"),
        ("<t:GetTrack><t:number><t:x/></t:number></t:GetTrack>", "not a number"),
        ("<t:GetTrack><t:number>7</t:number><t:number>8</t:number></t:GetTrack>", "one number"),
        ("<t:GetTrack><t:number>7</t:number></t:GetTrack><t:GetTrack/>", "more than one"),
    ];
    for (body, expected) in cases {
        for version in BOTH {
            let fault = refused(version, &message(version, "", body));
            assert_eq!(fault.code, Code::Sender { in_body: true }, "{body}");
            assert!(fault.reason.contains(expected), "{body}: {}", fault.reason);
            assert!(fault.to_xml().contains("<Refusal xmlns="), "{}", fault.to_xml());
        }
    }
    let huge = format!("<t:GetTrack><t:number>{}</t:number></t:GetTrack>", "7".repeat(1000));
    assert!(refused(Version::Soap11, &message(Version::Soap11, "", &huge)).reason.len() < 100);
}

#[test]
fn an_encoding_other_than_literal_is_unknown_in_soap_12_only() {
    let body = |style: &str| {
        let start = format!("<t:GetTrack e:encodingStyle='{style}'>");
        CALL.replacen("<t:GetTrack>", &start, 1)
    };
    let rpc = body("http://www.w3.org/2003/05/soap-encoding");
    let fault = refused(Version::Soap12, &message(Version::Soap12, "", &rpc));
    assert_eq!((&fault.code, fault.status()), (&Code::DataEncodingUnknown, 500));
    assert!(fault.to_xml().contains("soap:DataEncodingUnknown"));
    let none = body("http://www.w3.org/2003/05/soap-envelope/encoding/none");
    for (version, body) in [(Version::Soap12, none), (Version::Soap11, rpc)] {
        assert_eq!(parse(&message(version, "", &body), version), Ok((version, 7)));
    }
}

#[test]
fn other_faults_of_the_sender_have_the_status_of_their_version() {
    let namespace = Version::Soap11.namespace();
    let cases = [
        ("not XML", "not well-formed"),
        ("<a", "not well-formed"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "DOCTYPE"),
        (&format!("<e:Envelope xmlns:e='{namespace}'/>"), "no Body"),
        (&format!("<e:Envelope xmlns:e='{namespace}'><e:Header/></e:Envelope>"), "no Body"),
        (&format!("<e:Envelope xmlns:e='{namespace}'>text<e:Body/></e:Envelope>"), "text"),
        (&format!("<?x y?><e:Envelope xmlns:e='{namespace}'/>"), "processing instruction"),
        (&(message(Version::Soap11, "", CALL) + "<a/>"), "second root"),
        (
            &message(Version::Soap11, "", CALL).replace("</e:Body>", "</e:Body><e:x/>"),
            "follows the Body",
        ),
        (&(message(Version::Soap11, "", CALL) + "<?x y?>"), "follows the Envelope"),
        (
            &message(
                Version::Soap11,
                "<e:Header><x:y xmlns:x='u' e:mustUnderstand='2'/></e:Header>",
                CALL,
            ),
            "mustUnderstand",
        ),
    ];
    for (document, expected) in cases {
        let fault = refused(Version::Soap11, document);
        assert_eq!(fault.code, Code::Sender { in_body: false }, "{document}");
        assert!(fault.reason.contains(expected), "{document}: {}", fault.reason);
        assert_eq!(fault.status(), 500);
        assert!(!fault.to_xml().contains("detail"));
    }
    assert_eq!(refused(Version::Soap12, "not XML").status(), 400);
}

#[test]
fn what_a_peer_wrote_is_escaped_in_the_fault() {
    let body = "<t:GetTrack><t:number>&lt;/x&gt;&amp;</t:number></t:GetTrack>";
    for version in BOTH {
        let xml = refused(version, &message(version, "", body)).to_xml();
        assert!(xml.contains("no track &apos;&lt;/x&gt;&amp;&apos;"), "{xml}");
    }
}

#[test]
fn the_description_names_its_address_and_both_versions() {
    let wsdl = wsdl("http://host:1/soap?a&b");
    Reader::new(&wsdl).check_rest().unwrap();
    assert_eq!(wsdl.matches("location=\"http://host:1/soap?a&amp;b\"").count(), 2);
    assert!(wsdl.contains("wsdl/soap12/") && wsdl.contains("wsdl/soap/\""));
    assert!(!wsdl.contains('@'), "a placeholder is left");
}

proptest! {
    #[test]
    fn no_bytes_panic_the_parser(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        for version in BOTH {
            let _ = parse(&text, version).map_err(|fault| fault.to_xml());
        }
    }

    /// A valid message with a few bytes changed, removed or doubled: answered or refused, and every
    /// refusal is itself well-formed.
    #[test]
    fn no_damage_to_a_message_breaks_the_fault(
        soap12 in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..3, any::<u8>()), 1..6),
    ) {
        let version = BOTH[usize::from(soap12)];
        let header = "<e:Header><x:y xmlns:x='urn:x' e:mustUnderstand='0'>z</x:y></e:Header>";
        let mut bytes = message(version, header, CALL).into_bytes();
        for (index, kind, byte) in damage {
            let at = index.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match parse(&text, version) {
            Ok((_, number)) => prop_assert!((1..=22).contains(&number)),
            Err(fault) => prop_assert!(Reader::new(&fault.to_xml()).check_rest().is_ok()),
        }
    }
}
