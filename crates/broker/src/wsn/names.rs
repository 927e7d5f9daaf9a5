//! Namespaces, dialects and actions of the standards.

/// SOAP 1.1 §3: envelopes.
pub(crate) const SOAP11: &str = "http://schemas.xmlsoap.org/soap/envelope/";
/// SOAP 1.2 Part 1 §5.1: envelopes.
pub(crate) const SOAP12: &str = "http://www.w3.org/2003/05/soap-envelope";
/// WS-Addressing 1.0.
pub(crate) const WSA: &str = "http://www.w3.org/2005/08/addressing";
/// WS-Addressing as submitted in August 2004.
pub(crate) const WSA_2004: &str = "http://schemas.xmlsoap.org/ws/2004/08/addressing";
/// WS-BaseNotification 1.3: elements.
pub(crate) const WSNT: &str = "http://docs.oasis-open.org/wsn/b-2";
/// WS-BaseNotification 1.3: port types, from which actions are made.
pub(crate) const WSNT_BW: &str = "http://docs.oasis-open.org/wsn/bw-2";
/// WS-BrokeredNotification 1.3: elements.
pub(crate) const WSN_BR: &str = "http://docs.oasis-open.org/wsn/br-2";
/// WS-BrokeredNotification 1.3: port types.
pub(crate) const WSN_BRW: &str = "http://docs.oasis-open.org/wsn/brw-2";
/// WS-Topics 1.3.
pub(crate) const WSTOP: &str = "http://docs.oasis-open.org/wsn/t-1";
/// WS-BaseFaults 1.2.
pub(crate) const WSRF_BF: &str = "http://docs.oasis-open.org/wsrf/bf-2";
/// WS-Resource 1.2.
pub(crate) const WSRF_R: &str = "http://docs.oasis-open.org/wsrf/r-2";
/// WS-ResourceProperties 1.2: elements.
pub(crate) const WSRF_RP: &str = "http://docs.oasis-open.org/wsrf/rp-2";
/// WS-ResourceProperties 1.2: port types.
pub(crate) const WSRF_RPW: &str = "http://docs.oasis-open.org/wsrf/rpw-2";
/// WS-ResourceLifetime 1.2: elements.
pub(crate) const WSRF_RL: &str = "http://docs.oasis-open.org/wsrf/rl-2";
/// XML Schema: attributes of instances.
pub(crate) const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// Our elements and policies.
pub(crate) const LW: &str = "urn:longwire:wsn";
/// The namespace of topics that came by other protocols.
pub(crate) const LW_TOPICS: &str = "urn:longwire:topics";

/// The dialect of XPath 1.0 (WS-BaseNotification 1.3, `MessageContent`).
pub(crate) const XPATH: &str = "http://www.w3.org/TR/1999/REC-xpath-19991116";

/// The address that stands for the answer of the request (WS-Addressing 1.0 Core §2.1).
pub(crate) const WSA_ANONYMOUS: &str = "http://www.w3.org/2005/08/addressing/anonymous";
/// The address at which nobody is (WS-Addressing 1.0 Core §2.1).
pub(crate) const WSA_NONE: &str = "http://www.w3.org/2005/08/addressing/none";
/// The anonymous address of August 2004.
pub(crate) const WSA_2004_ANONYMOUS: &str =
    "http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous";

/// The action of a Notify.
pub(crate) const NOTIFY: &str = "http://docs.oasis-open.org/wsn/bw-2/NotificationConsumer/Notify";
/// The action of a message that is sent as it is, for the policy UseRaw.
pub(crate) const RAW: &str = "urn:longwire:wsn/raw";
