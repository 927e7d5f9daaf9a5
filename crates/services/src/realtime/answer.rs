//! Answers in a buffer of fixed size: status lines and SOAP faults.

use std::fmt::Write as _;

use crate::tracks::soap::Version;

use super::line::Line;
use super::request::{Code, Refusal};

/// Longest content of an answer that is made while the service runs, in bytes.
const MAX_CONTENT_BYTES: usize = 1536;
/// Longest such answer.
pub const MAX_ANSWER_BYTES: usize = 2048;

/// A whole answer.
pub type Answer = Line<MAX_ANSWER_BYTES>;

/// 100 (RFC 9110 §15.2.1).
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}

/// Writes a head and, but for HEAD, the content.
fn write(answer: &mut Answer, (status, is_last): (u16, bool), (kind, content): (&str, &str)) {
    answer.clear();
    let phrase = phrase(status);
    // It never fails: there is room for the largest.
    let _ = write!(answer, "HTTP/1.1 {status} {phrase}\r\nContent-Length: {}\r\n", content.len());
    if !content.is_empty() {
        let _ = write!(answer, "Content-Type: {kind}\r\n");
    }
    if status == 405 {
        let _ = answer.write_str("Allow: GET, HEAD, POST\r\n");
    }
    let close = if is_last { "Connection: close\r\n" } else { "" };
    let _ = write!(answer, "{close}\r\n{content}");
}

/// The answer of a message that was accepted: 202 without content, as of a one-way operation
/// (WSDL 1.1 §2.4.1; SOAP 1.1 §6.2 asks for a status of 2xx).
pub fn accepted(answer: &mut Answer, is_last: bool) {
    write(answer, (202, is_last), ("", ""));
}

/// One line with a status.
pub fn plain(answer: &mut Answer, status: u16, is_last: bool, line: &str) {
    write(answer, (status, is_last), ("text/plain; charset=utf-8", line));
}

/// A document of JSON.
pub fn json(answer: &mut Answer, is_last: bool, text: &str) {
    write(answer, (200, is_last), ("application/json", text));
}

/// A fault, in the version of the message that it answers (SOAP 1.1 §4.4, SOAP 1.2 part 1 §5.4).
pub fn fault(answer: &mut Answer, version: Version, is_last: bool, refusal: &Refusal) {
    let mut content = Line::<MAX_CONTENT_BYTES>::default();
    let namespace = version.namespace();
    let _ = write!(
        content,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><s:Envelope xmlns:s=\"{namespace}\">"
    );
    let code = match (version, refusal.code) {
        (_, Code::VersionMismatch) => "VersionMismatch",
        (_, Code::MustUnderstand) => "MustUnderstand",
        (Version::Soap11, Code::Sender) => "Client",
        (Version::Soap11, Code::Receiver) => "Server",
        (Version::Soap12, Code::Sender) => "Sender",
        (Version::Soap12, Code::Receiver) => "Receiver",
    };
    let (status, kind) = match version {
        Version::Soap11 => {
            let _ =
                write!(content, "<s:Body><s:Fault><faultcode>s:{code}</faultcode><faultstring>");
            content.push_escaped(refusal.reason.as_str());
            let _ = content.write_str("</faultstring></s:Fault></s:Body></s:Envelope>");
            // SOAP 1.1 §6.2: every fault.
            (500, "text/xml; charset=utf-8")
        }
        Version::Soap12 => {
            let _ = write!(
                content,
                "<s:Body><s:Fault><s:Code><s:Value>s:{code}</s:Value></s:Code><s:Reason>\
                 <s:Text xml:lang=\"en\">"
            );
            content.push_escaped(refusal.reason.as_str());
            let end = "</s:Text></s:Reason></s:Fault></s:Body></s:Envelope>";
            let _ = content.write_str(end);
            // SOAP 1.2 part 2, table 20.
            let status = if refusal.code == Code::Sender { 400 } else { 500 };
            (status, "application/soap+xml; charset=utf-8")
        }
    };
    write(answer, (status, is_last), (kind, content.as_str()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::{Node, Reader};

    #[test]
    fn the_longest_fault_is_whole_and_well_formed() {
        for version in [Version::Soap11, Version::Soap12] {
            for code in [Code::VersionMismatch, Code::MustUnderstand, Code::Sender, Code::Receiver]
            {
                let reason = Line::of(format_args!("{}", "\"".repeat(300)));
                let mut answer = Answer::default();
                fault(&mut answer, version, true, &Refusal { code, reason });
                let (head, content) = answer.as_str().split_once("\r\n\r\n").unwrap();
                let length = format!("Content-Length: {}\r\n", content.len());
                assert!(head.contains(&length) && head.ends_with("Connection: close"), "{head}");
                let mut reader = Reader::new(content);
                let mut text = String::new();
                while let Some(node) = reader.next_node().unwrap() {
                    if let Node::Text(piece) = node {
                        text.push_str(&piece);
                    }
                }
                assert!(text.contains(&"\"".repeat(200)), "{text}");
            }
        }
    }

    #[test]
    fn an_accepted_message_has_no_content() {
        let mut answer = Answer::default();
        accepted(&mut answer, false);
        assert_eq!(answer.as_str(), "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
    }
}
