//! Content formats and the media types that they stand for (RFC 7252 §12.3 and its registry).

/// RFC 6690 §7.4.
pub const LINK_FORMAT: u16 = 40;
/// `application/xml`.
pub const XML: u16 = 41;
/// `application/octet-stream`.
pub const OCTET_STREAM: u16 = 42;
/// `application/exi`.
pub const EXI: u16 = 47;
/// `application/json`.
pub const JSON: u16 = 50;
/// `application/cbor`.
pub const CBOR: u16 = 60;

/// RFC 9177 §12.3.
pub const MISSING_BLOCKS: u16 = 272;

/// A format, its media type, and its content coding if it has one.
type Row = (u16, &'static str, Option<&'static str>);

/// By number. Parameters stand as the registry has them.
const TABLE: [Row; 64] = [
    (0, "text/plain; charset=utf-8", None),
    (16, "application/cose; cose-type=\"cose-encrypt0\"", None),
    (17, "application/cose; cose-type=\"cose-mac0\"", None),
    (18, "application/cose; cose-type=\"cose-sign1\"", None),
    (19, "application/ace+cbor", None),
    (21, "image/gif", None),
    (22, "image/jpeg", None),
    (23, "image/png", None),
    (40, "application/link-format", None),
    (41, "application/xml", None),
    (42, "application/octet-stream", None),
    (47, "application/exi", None),
    (50, "application/json", None),
    (51, "application/json-patch+json", None),
    (52, "application/merge-patch+json", None),
    (60, "application/cbor", None),
    (61, "application/cwt", None),
    (62, "application/multipart-core", None),
    (63, "application/cbor-seq", None),
    (64, "application/edhoc+cbor-seq", None),
    (65, "application/cid-edhoc+cbor-seq", None),
    (96, "application/cose; cose-type=\"cose-encrypt\"", None),
    (97, "application/cose; cose-type=\"cose-mac\"", None),
    (98, "application/cose; cose-type=\"cose-sign\"", None),
    (101, "application/cose-key", None),
    (102, "application/cose-key-set", None),
    (110, "application/senml+json", None),
    (111, "application/sensml+json", None),
    (112, "application/senml+cbor", None),
    (113, "application/sensml+cbor", None),
    (114, "application/senml-exi", None),
    (115, "application/sensml-exi", None),
    (140, "application/yang-data+cbor; id=sid", None),
    (256, "application/coap-group+json", None),
    (257, "application/concise-problem-details+cbor", None),
    (258, "application/swid+cbor", None),
    (271, "application/dots+cbor", None),
    (272, "application/missing-blocks+cbor-seq", None),
    (280, "application/pkcs7-mime; smime-type=server-generated-key", None),
    (281, "application/pkcs7-mime; smime-type=certs-only", None),
    (284, "application/pkcs8", None),
    (285, "application/csrattrs", None),
    (286, "application/pkcs10", None),
    (287, "application/pkix-cert", None),
    (290, "application/aif+cbor", None),
    (291, "application/aif+json", None),
    (310, "application/senml+xml", None),
    (311, "application/sensml+xml", None),
    (320, "application/senml-etch+json", None),
    (322, "application/senml-etch+cbor", None),
    (340, "application/yang-data+cbor", None),
    (341, "application/yang-data+cbor; id=name", None),
    (432, "application/td+json", None),
    (433, "application/tm+json", None),
    (836, "application/voucher+cose", None),
    (10000, "application/vnd.ocf+cbor", None),
    (10001, "application/oscore", None),
    (11050, "application/json", Some("deflate")),
    (11060, "application/cbor", Some("deflate")),
    (11542, "application/vnd.oma.lwm2m+tlv", None),
    (11543, "application/vnd.oma.lwm2m+json", None),
    (11544, "application/vnd.oma.lwm2m+cbor", None),
    (20000, "text/css", None),
    (30000, "image/svg+xml", None),
];

/// Media types that are another way to write one of the table (RFC 7303 §9.2: an alias).
const ALIASES: [(&str, u16); 1] = [("text/xml", XML)];

/// The charset that text of these types has anyway (RFC 7303 §3.2, RFC 8259 §8.1).
const IMPLIED_CHARSET: &str = "charset=utf-8";

/// The media type and the content coding of a format that is registered.
#[must_use]
pub fn media_type(format: u16) -> Option<(&'static str, Option<&'static str>)> {
    let at = TABLE.binary_search_by_key(&format, |row| row.0).ok()?;
    TABLE.get(at).map(|row| (row.1, row.2))
}

/// The format of a media type with its parameters and a content coding; `None` if it has none.
///
/// Case and white space around `;` do not count. `text/xml` is `application/xml`, and a charset of
/// UTF-8 may be left out, or be there, where it changes nothing.
#[must_use]
pub fn of(media_type: &str, coding: Option<&str>) -> Option<u16> {
    let row = TABLE.iter().find(|row| {
        let is_coding = match (row.2, coding) {
            (None, None) => true,
            (Some(row), Some(coding)) => row.eq_ignore_ascii_case(coding),
            _ => false,
        };
        is_coding && is_same(row.1, media_type)
    });
    let alias = || {
        let same = |row: &&(&str, u16)| coding.is_none() && is_same(row.0, media_type);
        ALIASES.iter().find(same).map(|row| row.1)
    };
    row.map(|row| row.0).or_else(alias)
}

/// Whether two media types say the same, whatever the order of their parameters.
fn is_same(one: &str, other: &str) -> bool {
    fn parts(text: &str) -> impl Iterator<Item = &str> {
        let essence = text.split(';').take(1);
        let parameters = text.split(';').skip(1);
        essence
            .chain(parameters)
            .map(str::trim)
            .filter(|part| !part.is_empty() && !part.eq_ignore_ascii_case(IMPLIED_CHARSET))
    }
    let same = |a: &str, b: &str| {
        let bare = |text: &str| text.bytes().filter(|b| *b != b'"').count();
        let bytes = |text| str::bytes(text).filter(|b| *b != b'"');
        bare(a) == bare(b) && bytes(a).zip(bytes(b)).all(|(a, b)| a.eq_ignore_ascii_case(&b))
    };
    let holds = |a: &str, b: &str| parts(a).all(|part| parts(b).any(|other| same(part, other)));
    let essence = |text| str::split(text, ';').next().unwrap_or_default().trim();
    same(essence(one), essence(other)) && holds(one, other) && holds(other, one)
}
