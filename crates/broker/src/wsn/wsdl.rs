//! The description of the service in WSDL 1.1: the operations of the standards with both versions
//! of SOAP, and the types that their messages have.

use super::names::{LW, WSA, WSN_BR, WSN_BRW, WSNT, WSNT_BW, WSRF_BF, WSRF_R, WSRF_RP, WSRF_RPW};

/// An operation: the namespace and port type of its action, its name, the prefix of its elements,
/// whether it is answered, and its faults.
struct Operation {
    action: (&'static str, &'static str),
    name: &'static str,
    prefix: &'static str,
    is_answered: bool,
    faults: &'static [&'static str],
}

const UNKNOWN: &str = "wsrf-r:ResourceUnknownFault";

const fn operation(
    action: (&'static str, &'static str),
    name: &'static str,
    prefix: &'static str,
    faults: &'static [&'static str],
) -> Operation {
    Operation { action, name, prefix, is_answered: true, faults }
}

const NOTIFY: Operation = Operation {
    action: (WSNT_BW, "NotificationConsumer"),
    name: "Notify",
    prefix: "wsnt",
    is_answered: false,
    faults: &[],
};

const PROPERTY: Operation = operation(
    (WSRF_RPW, "GetResourceProperty"),
    "GetResourceProperty",
    "wsrf-rp",
    &[UNKNOWN, "wsrf-rp:InvalidResourcePropertyQNameFault"],
);

/// Port types and the path of their addresses.
const PORT_TYPES: [(&str, &str, &[Operation]); 4] = [
    (
        "NotificationBroker",
        "",
        &[
            NOTIFY,
            operation(
                (WSNT_BW, "NotificationProducer"),
                "Subscribe",
                "wsnt",
                &[
                    "wsnt:InvalidFilterFault",
                    "wsnt:TopicExpressionDialectUnknownFault",
                    "wsnt:InvalidTopicExpressionFault",
                    "wsnt:TopicNotSupportedFault",
                    "wsnt:InvalidProducerPropertiesExpressionFault",
                    "wsnt:InvalidMessageContentExpressionFault",
                    "wsnt:UnacceptableInitialTerminationTimeFault",
                    "wsnt:UnrecognizedPolicyRequestFault",
                    "wsnt:SubscribeCreationFailedFault",
                ],
            ),
            operation(
                (WSNT_BW, "NotificationProducer"),
                "GetCurrentMessage",
                "wsnt",
                &[
                    "wsnt:TopicExpressionDialectUnknownFault",
                    "wsnt:InvalidTopicExpressionFault",
                    "wsnt:TopicNotSupportedFault",
                    "wsnt:NoCurrentMessageOnTopicFault",
                    "wsnt:MultipleTopicsSpecifiedFault",
                ],
            ),
            operation(
                (WSN_BRW, "RegisterPublisher"),
                "RegisterPublisher",
                "wsn-br",
                &[
                    "wsnt:InvalidTopicExpressionFault",
                    "wsnt:TopicNotSupportedFault",
                    "wsnt:UnacceptableInitialTerminationTimeFault",
                    "wsn-br:PublisherRegistrationRejectedFault",
                    "wsn-br:PublisherRegistrationFailedFault",
                ],
            ),
            operation(
                (WSNT_BW, "CreatePullPoint"),
                "CreatePullPoint",
                "wsnt",
                &["wsnt:UnableToCreatePullPointFault"],
            ),
            PROPERTY,
        ],
    ),
    (
        "PausableSubscriptionManager",
        "/subscription",
        &[
            operation(
                (WSNT_BW, "SubscriptionManager"),
                "Renew",
                "wsnt",
                &[UNKNOWN, "wsnt:UnacceptableTerminationTimeFault"],
            ),
            operation(
                (WSNT_BW, "SubscriptionManager"),
                "Unsubscribe",
                "wsnt",
                &[UNKNOWN, "wsnt:UnableToDestroySubscriptionFault"],
            ),
            operation(
                (WSNT_BW, "PausableSubscriptionManager"),
                "PauseSubscription",
                "wsnt",
                &[UNKNOWN, "wsnt:PauseFailedFault"],
            ),
            operation(
                (WSNT_BW, "PausableSubscriptionManager"),
                "ResumeSubscription",
                "wsnt",
                &[UNKNOWN, "wsnt:ResumeFailedFault"],
            ),
            PROPERTY,
        ],
    ),
    (
        "PullPoint",
        "/pullpoint",
        &[
            NOTIFY,
            operation(
                (WSNT_BW, "PullPoint"),
                "GetMessages",
                "wsnt",
                &[UNKNOWN, "wsnt:UnableToGetMessagesFault"],
            ),
            operation(
                (WSNT_BW, "PullPoint"),
                "DestroyPullPoint",
                "wsnt",
                &[UNKNOWN, "wsnt:UnableToDestroyPullPointFault"],
            ),
        ],
    ),
    (
        "PublisherRegistrationManager",
        "/registration",
        &[
            operation(
                (WSN_BRW, "PublisherRegistrationManager"),
                "DestroyRegistration",
                "wsn-br",
                &[UNKNOWN, "wsn-br:ResourceNotDestroyedFault"],
            ),
            PROPERTY,
        ],
    ),
];

/// What may stand at the end of an element of the standards.
const MORE: &str = "<x:any namespace='##other' processContents='lax' minOccurs='0' \
                    maxOccurs='unbounded'/>";

/// An element: its name, and the particles of its sequence as name, type and how often: `1`, `?`,
/// `*` or `+`.
type Element = (&'static str, &'static [Particle]);
type Particle = (&'static str, &'static str, char);

const REFERENCE: &str = "wsa:EndpointReferenceType";

/// The elements of WS-BaseNotification 1.3 that are no faults.
const BASE: [Element; 21] = [
    (
        "NotificationMessage",
        &[
            ("SubscriptionReference", REFERENCE, '?'),
            ("Topic", "wsnt:Expression", '?'),
            ("ProducerReference", REFERENCE, '?'),
            ("Message", "wsnt:Single", '1'),
        ],
    ),
    ("Notify", &[("@wsnt:NotificationMessage", "", '+')]),
    (
        "Subscribe",
        &[
            ("ConsumerReference", REFERENCE, '1'),
            ("Filter", "wsnt:Any", '?'),
            ("InitialTerminationTime", "x:string", '0'),
            ("SubscriptionPolicy", "wsnt:Any", '?'),
        ],
    ),
    (
        "SubscribeResponse",
        &[
            ("SubscriptionReference", REFERENCE, '1'),
            ("CurrentTime", "x:dateTime", '?'),
            ("TerminationTime", "x:dateTime", '0'),
        ],
    ),
    ("GetCurrentMessage", &[("Topic", "wsnt:Expression", '1')]),
    ("GetCurrentMessageResponse", &[]),
    ("CreatePullPoint", &[]),
    ("CreatePullPointResponse", &[("PullPoint", REFERENCE, '1')]),
    ("GetMessages", &[("MaximumNumber", "x:nonNegativeInteger", '?')]),
    ("GetMessagesResponse", &[("@wsnt:NotificationMessage", "", '*')]),
    ("DestroyPullPoint", &[]),
    ("DestroyPullPointResponse", &[]),
    ("Renew", &[("TerminationTime", "x:string", 'n')]),
    (
        "RenewResponse",
        &[("TerminationTime", "x:dateTime", 'n'), ("CurrentTime", "x:dateTime", '?')],
    ),
    ("Unsubscribe", &[]),
    ("UnsubscribeResponse", &[]),
    ("PauseSubscription", &[]),
    ("PauseSubscriptionResponse", &[]),
    ("ResumeSubscription", &[]),
    ("ResumeSubscriptionResponse", &[]),
    ("UseRaw", &[]),
];

/// Those of WS-BrokeredNotification 1.3.
const BROKERED: [Element; 4] = [
    (
        "RegisterPublisher",
        &[
            ("PublisherReference", REFERENCE, '?'),
            ("Topic", "wsnt:Expression", '*'),
            ("Demand", "x:boolean", '?'),
            ("InitialTerminationTime", "x:dateTime", '?'),
        ],
    ),
    (
        "RegisterPublisherResponse",
        &[
            ("PublisherRegistrationReference", REFERENCE, '1'),
            ("ConsumerReference", REFERENCE, '?'),
        ],
    ),
    ("DestroyRegistration", &[]),
    ("DestroyRegistrationResponse", &[]),
];

/// Particles that some faults have besides those of all.
const FAULT_PARTS: [Element; 4] = [
    ("wsnt:InvalidFilterFault", &[("UnknownFilter", "x:QName", '+')]),
    ("wsnt:UnrecognizedPolicyRequestFault", &[("UnrecognizedPolicy", "x:QName", '*')]),
    ("wsnt:UnacceptableInitialTerminationTimeFault", TIMES),
    ("wsnt:UnacceptableTerminationTimeFault", TIMES),
];
const TIMES: &[Particle] =
    &[("MinimumTime", "x:dateTime", '1'), ("MaximumTime", "x:dateTime", '?')];

/// Types that stand in no table.
const SHARED_TYPES: &str = "<x:complexType name='Expression' mixed='true'><x:sequence>\
<x:any processContents='lax' minOccurs='0'/></x:sequence>\
<x:attribute name='Dialect' type='x:anyURI' use='required'/>\
<x:anyAttribute processContents='lax'/></x:complexType>\
<x:complexType name='Any'><x:sequence>\
<x:any processContents='lax' minOccurs='0' maxOccurs='unbounded'/></x:sequence></x:complexType>\
<x:complexType name='Single'><x:sequence><x:any processContents='lax'/></x:sequence>\
</x:complexType>\
<x:element name='TopicExpression' type='wsnt:Expression'/>\
<x:element name='MessageContent' type='wsnt:Expression'/>";

const ADDRESSING_TYPES: &str = "<x:complexType name='EndpointReferenceType'><x:sequence>\
<x:element name='Address' type='x:anyURI'/>\
<x:element name='ReferenceParameters' type='wsa:List' minOccurs='0'/>\
<x:element name='Metadata' type='wsa:List' minOccurs='0'/>\
<x:any namespace='##other' processContents='lax' minOccurs='0' maxOccurs='unbounded'/>\
</x:sequence><x:anyAttribute namespace='##other' processContents='lax'/></x:complexType>\
<x:complexType name='List'><x:sequence>\
<x:any processContents='lax' minOccurs='0' maxOccurs='unbounded'/></x:sequence>\
<x:anyAttribute namespace='##other' processContents='lax'/></x:complexType>";

const FAULT_TYPES: &str = "<x:complexType name='BaseFaultType'><x:sequence>\
<x:any namespace='##other' processContents='lax' minOccurs='0' maxOccurs='unbounded'/>\
<x:element name='Timestamp' type='x:dateTime'/>\
<x:element name='Originator' type='wsa:EndpointReferenceType' minOccurs='0'/>\
<x:element name='Description' type='x:string' minOccurs='0' maxOccurs='unbounded'/>\
</x:sequence><x:anyAttribute namespace='##other' processContents='lax'/></x:complexType>";

const PROPERTY_TYPES: &str = "<x:element name='GetResourceProperty' type='x:QName'/>\
<x:element name='GetResourcePropertyResponse'><x:complexType><x:sequence>\
<x:any processContents='lax' minOccurs='0' maxOccurs='unbounded'/></x:sequence>\
</x:complexType></x:element>";

const PREFIXES: [(&str, &str); 8] = [
    ("x", "http://www.w3.org/2001/XMLSchema"),
    ("wsa", WSA),
    ("wsnt", WSNT),
    ("wsn-br", WSN_BR),
    ("wsrf-bf", WSRF_BF),
    ("wsrf-r", WSRF_R),
    ("wsrf-rp", WSRF_RP),
    ("lw", LW),
];

fn uri(prefix: &str) -> &'static str {
    PREFIXES.iter().find(|(known, _)| *known == prefix).map_or("", |(_, uri)| uri)
}

macro_rules! put {
    ($out:expr, $($rest:tt)*) => { $out.push_str(&format!($($rest)*)) };
}

fn particles(out: &mut String, parts: &[Particle]) {
    for (name, of, count) in parts {
        let bounds = match count {
            '?' => " minOccurs='0'",
            '0' => " minOccurs='0' nillable='true'",
            'n' => " nillable='true'",
            '*' => " minOccurs='0' maxOccurs='unbounded'",
            '+' => " maxOccurs='unbounded'",
            _ => "",
        };
        match name.strip_prefix('@') {
            Some(name) => put!(out, "<x:element ref='{name}'{bounds}/>"),
            None => put!(out, "<x:element name='{name}' type='{of}'{bounds}/>"),
        }
    }
}

fn elements(out: &mut String, elements: &[Element]) {
    for (name, parts) in elements {
        put!(out, "<x:element name='{name}'><x:complexType><x:sequence>");
        particles(out, parts);
        // These two end with what they name.
        if !matches!(*name, "NotificationMessage" | "RegisterPublisherResponse" | "UseRaw") {
            out.push_str(MORE);
        }
        out.push_str("</x:sequence></x:complexType></x:element>");
    }
}

fn operations() -> impl Iterator<Item = &'static Operation> {
    PORT_TYPES.iter().flat_map(|(.., operations)| operations.iter())
}

/// The faults of a namespace, each once.
fn faults(prefix: &str) -> Vec<&'static str> {
    let all = operations().flat_map(|operation| operation.faults.iter().copied());
    let mut found: Vec<&str> =
        all.filter(|fault| fault.split(':').next() == Some(prefix)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn fault_elements(out: &mut String, prefix: &str) {
    for fault in faults(prefix) {
        let (_, name) = fault.split_once(':').unwrap_or_default();
        put!(out, "<x:element name='{name}'><x:complexType><x:complexContent>");
        out.push_str("<x:extension base='wsrf-bf:BaseFaultType'><x:sequence>");
        if let Some((_, parts)) = FAULT_PARTS.iter().find(|(known, _)| *known == fault) {
            particles(out, parts);
        }
        out.push_str("</x:sequence></x:extension></x:complexContent></x:complexType></x:element>");
    }
}

fn schema(out: &mut String, prefix: &str, imports: &[&str], content: impl FnOnce(&mut String)) {
    put!(out, "<x:schema elementFormDefault='qualified' targetNamespace='{}'>", uri(prefix));
    for import in imports {
        put!(out, "<x:import namespace='{}'/>", uri(import));
    }
    content(out);
    out.push_str("</x:schema>");
}

fn types(out: &mut String) {
    out.push_str("<w:types>");
    schema(out, "wsa", &[], |out| out.push_str(ADDRESSING_TYPES));
    schema(out, "wsrf-bf", &["wsa"], |out| out.push_str(FAULT_TYPES));
    schema(out, "wsrf-r", &["wsrf-bf"], |out| fault_elements(out, "wsrf-r"));
    schema(out, "wsrf-rp", &["wsrf-bf"], |out| {
        out.push_str(PROPERTY_TYPES);
        fault_elements(out, "wsrf-rp");
    });
    schema(out, "wsnt", &["wsa", "wsrf-bf"], |out| {
        out.push_str(SHARED_TYPES);
        elements(out, &BASE);
        fault_elements(out, "wsnt");
    });
    schema(out, "wsn-br", &["wsa", "wsrf-bf", "wsnt"], |out| {
        elements(out, &BROKERED);
        fault_elements(out, "wsn-br");
    });
    out.push_str("</w:types>");
}

fn messages(out: &mut String) {
    let mut message = |prefix: &str, name: &str| {
        put!(
            out,
            "<w:message name='{name}'><w:part name='body' element='{prefix}:{name}'/></w:message>"
        );
    };
    let mut seen: Vec<&str> = Vec::new();
    for operation in operations() {
        if seen.contains(&operation.name) {
            continue;
        }
        seen.push(operation.name);
        message(operation.prefix, operation.name);
        if operation.is_answered {
            message(operation.prefix, &format!("{}Response", operation.name));
        }
    }
    for prefix in ["wsrf-r", "wsrf-rp", "wsnt", "wsn-br"] {
        for fault in faults(prefix) {
            message(prefix, fault.split_once(':').unwrap_or_default().1);
        }
    }
}

fn port_types(out: &mut String) {
    for (name, _, operations) in PORT_TYPES {
        put!(out, "<w:portType name='{name}'>");
        for Operation { action: (uri, port), name, is_answered, faults, .. } in operations {
            // The action of what is not answered has no suffix.
            let suffix = if *is_answered { "Request" } else { "" };
            put!(out, "<w:operation name='{name}'>");
            put!(out, "<w:input message='lw:{name}' a:Action='{uri}/{port}/{name}{suffix}'/>");
            if *is_answered {
                put!(
                    out,
                    "<w:output message='lw:{name}Response' \
                     a:Action='{uri}/{port}/{name}Response'/>"
                );
            }
            for fault in *faults {
                let (_, fault) = fault.split_once(':').unwrap_or_default();
                put!(out, "<w:fault name='{fault}' message='lw:{fault}'/>");
            }
            out.push_str("</w:operation>");
        }
        out.push_str("</w:portType>");
    }
}

fn bindings(out: &mut String) {
    for (port, _, operations) in PORT_TYPES {
        for (version, soap) in [("11", "s"), ("12", "t")] {
            put!(out, "<w:binding name='{port}Soap{version}' type='lw:{port}'>");
            put!(
                out,
                "<{soap}:binding style='document' \
                 transport='http://schemas.xmlsoap.org/soap/http'/>"
            );
            for Operation { name, is_answered, faults, .. } in operations {
                put!(out, "<w:operation name='{name}'><{soap}:operation soapAction=''/>");
                put!(out, "<w:input><{soap}:body use='literal'/></w:input>");
                if *is_answered {
                    put!(out, "<w:output><{soap}:body use='literal'/></w:output>");
                }
                for fault in *faults {
                    let (_, fault) = fault.split_once(':').unwrap_or_default();
                    put!(
                        out,
                        "<w:fault name='{fault}'><{soap}:fault name='{fault}' use='literal'/>\
                         </w:fault>"
                    );
                }
                out.push_str("</w:operation>");
            }
            out.push_str("</w:binding>");
        }
    }
}

/// The document, for a broker at an address.
pub(super) fn document(address: &str) -> String {
    let mut out = String::from("<?xml version='1.0' encoding='UTF-8'?><w:definitions");
    put!(out, " xmlns:w='http://schemas.xmlsoap.org/wsdl/' targetNamespace='{LW}'");
    put!(out, " xmlns:s='http://schemas.xmlsoap.org/wsdl/soap/'");
    put!(out, " xmlns:t='http://schemas.xmlsoap.org/wsdl/soap12/'");
    put!(out, " xmlns:a='http://www.w3.org/2007/05/addressing/metadata'");
    for (prefix, uri) in PREFIXES {
        put!(out, " xmlns:{prefix}='{uri}'");
    }
    out.push('>');
    types(&mut out);
    messages(&mut out);
    port_types(&mut out);
    bindings(&mut out);
    out.push_str("<w:service name='NotificationBrokerService'>");
    let mut base = Vec::new();
    codec::xml::escape(address.trim_end_matches('/'), true, &mut base);
    let base = String::from_utf8(base).unwrap_or_default();
    for (port, path, _) in PORT_TYPES {
        for (version, soap) in [("11", "s"), ("12", "t")] {
            put!(
                out,
                "<w:port name='{port}Soap{version}' binding='lw:{port}Soap{version}'>\
                 <{soap}:address location=\"{base}{path}\"/></w:port>"
            );
        }
    }
    out.push_str("</w:service></w:definitions>");
    out
}
