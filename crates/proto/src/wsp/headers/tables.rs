// flat table: numbers of WAP-230 tables 38 to 42 and what they stand for.
//! Numbers that stand for names (WAP-230 appendix A), each at the place of its number.

use super::EncodingVersion::{self, V1_1, V1_2, V1_3, V1_4};
use crate::wsp::packet::Method;

/// How the value of a field is encoded (WAP-230 §8.4.2).
#[derive(Clone, Copy, Debug)]
pub(super) enum Grammar {
    /// Text as it is.
    Text,
    /// Text as a quoted string.
    Quoted,
    /// A number.
    Integer,
    /// A date.
    Date,
    /// Entity tags, which are text.
    Tags,
    /// A date, or an entity tag.
    TagOrDate,
    /// A name.
    Named(Names),
    /// A name, perhaps with a weight.
    Qualified(Names),
    /// A name, perhaps with parameters.
    WithParameters(&'static [&'static str]),
    /// A media type or range, perhaps with parameters.
    Media,
    /// A disposition with parameters, always counted.
    Disposition,
    /// An application by its number or its URI.
    Application,
    CacheControl,
    Challenge,
    ContentRange,
    Cookie,
    Credentials,
    Md5,
    Pragma,
    ProfileWarning,
    Range,
    RetryAfter,
    SetCookie,
    Te,
    Version,
    Warning,
    /// What HTTP has no text for.
    Opaque,
}

/// Which names numbers stand for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Names {
    Charset,
    Field,
    Language,
    Method,
    Listed(&'static [&'static str]),
}

/// A field of code page 1 (table 39); its number is its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) since: EncodingVersion,
    /// Each element of the list in HTTP is a header of its own.
    pub(super) is_list: bool,
    pub(super) grammar: Grammar,
}

const fn one(name: &'static str, since: EncodingVersion, grammar: Grammar) -> Row {
    Row { name, since, is_list: false, grammar }
}

const fn list(name: &'static str, since: EncodingVersion, grammar: Grammar) -> Row {
    Row { name, since, is_list: true, grammar }
}

/// Table 39.
pub(super) const FIELDS: [Row; 0x48] = {
    use Grammar::*;
    [
        list("Accept", V1_1, Media),
        list("Accept-Charset", V1_1, Qualified(Names::Charset)),
        list("Accept-Encoding", V1_1, Named(Names::Listed(&CODINGS))),
        list("Accept-Language", V1_1, Qualified(Names::Language)),
        list("Accept-Ranges", V1_1, Named(Names::Listed(&RANGES))),
        one("Age", V1_1, Integer),
        list("Allow", V1_1, Named(Names::Method)),
        one("Authorization", V1_1, Credentials),
        list("Cache-Control", V1_1, CacheControl),
        list("Connection", V1_1, Named(Names::Listed(&CONNECTIONS))),
        one("Content-Base", V1_1, Text),
        list("Content-Encoding", V1_1, Named(Names::Listed(&CODINGS))),
        list("Content-Language", V1_1, Named(Names::Language)),
        one("Content-Length", V1_1, Integer),
        one("Content-Location", V1_1, Text),
        one("Content-MD5", V1_1, Md5),
        one("Content-Range", V1_1, ContentRange),
        one("Content-Type", V1_1, Media),
        one("Date", V1_1, Date),
        one("ETag", V1_1, Tags),
        one("Expires", V1_1, Date),
        one("From", V1_1, Text),
        one("Host", V1_1, Text),
        one("If-Modified-Since", V1_1, Date),
        one("If-Match", V1_1, Tags),
        one("If-None-Match", V1_1, Tags),
        one("If-Range", V1_1, TagOrDate),
        one("If-Unmodified-Since", V1_1, Date),
        one("Location", V1_1, Text),
        one("Last-Modified", V1_1, Date),
        one("Max-Forwards", V1_1, Integer),
        list("Pragma", V1_1, Pragma),
        one("Proxy-Authenticate", V1_1, Challenge),
        one("Proxy-Authorization", V1_1, Credentials),
        list("Public", V1_1, Named(Names::Method)),
        one("Range", V1_1, Range),
        one("Referer", V1_1, Text),
        one("Retry-After", V1_1, RetryAfter),
        one("Server", V1_1, Text),
        list("Transfer-Encoding", V1_1, WithParameters(&TRANSFER_CODINGS)),
        one("Upgrade", V1_1, Text),
        one("User-Agent", V1_1, Text),
        list("Vary", V1_1, Named(Names::Field)),
        one("Via", V1_1, Text),
        list("Warning", V1_1, Warning),
        one("WWW-Authenticate", V1_1, Challenge),
        one("Content-Disposition", V1_1, Disposition),
        one("X-Wap-Application-Id", V1_2, Application),
        one("X-Wap-Content-URI", V1_2, Text),
        one("X-Wap-Initiator-URI", V1_2, Text),
        list("Accept-Application", V1_2, Application),
        one("Bearer-Indication", V1_2, Integer),
        one("Push-Flag", V1_2, Integer),
        one("Profile", V1_2, Text),
        one("Profile-Diff", V1_2, Opaque),
        one("Profile-Warning", V1_2, ProfileWarning),
        one("Expect", V1_3, WithParameters(&EXPECTATIONS)),
        list("TE", V1_3, Te),
        list("Trailer", V1_3, Named(Names::Field)),
        list("Accept-Charset", V1_3, Qualified(Names::Charset)),
        list("Accept-Encoding", V1_3, Qualified(Names::Listed(&ACCEPTED_CODINGS))),
        list("Cache-Control", V1_3, CacheControl),
        one("Content-Range", V1_3, ContentRange),
        one("X-Wap-Tod", V1_3, Date),
        one("Content-ID", V1_3, Quoted),
        one("Set-Cookie", V1_3, SetCookie),
        one("Cookie", V1_3, Cookie),
        one("Encoding-Version", V1_3, Version),
        one("Profile-Warning", V1_4, ProfileWarning),
        one("Content-Disposition", V1_4, Disposition),
        one("X-WAP-Security", V1_4, Named(Names::Listed(&SECURITY))),
        list("Cache-Control", V1_4, CacheControl),
    ]
};

/// Table 40, up to 0x3f; behind it what was registered later.
const MEDIA: [&str; 0x4e] = [
    "*/*",
    "text/*",
    "text/html",
    "text/plain",
    "text/x-hdml",
    "text/x-ttml",
    "text/x-vCalendar",
    "text/x-vCard",
    "text/vnd.wap.wml",
    "text/vnd.wap.wmlscript",
    "text/vnd.wap.wta-event",
    "multipart/*",
    "multipart/mixed",
    "multipart/form-data",
    "multipart/byteranges",
    "multipart/alternative",
    "application/*",
    "application/java-vm",
    "application/x-www-form-urlencoded",
    "application/x-hdmlc",
    "application/vnd.wap.wmlc",
    "application/vnd.wap.wmlscriptc",
    "application/vnd.wap.wta-eventc",
    "application/vnd.wap.uaprof",
    "application/vnd.wap.wtls-ca-certificate",
    "application/vnd.wap.wtls-user-certificate",
    "application/x-x509-ca-cert",
    "application/x-x509-user-cert",
    "image/*",
    "image/gif",
    "image/jpeg",
    "image/tiff",
    "image/png",
    "image/vnd.wap.wbmp",
    "application/vnd.wap.multipart.*",
    "application/vnd.wap.multipart.mixed",
    "application/vnd.wap.multipart.form-data",
    "application/vnd.wap.multipart.byteranges",
    "application/vnd.wap.multipart.alternative",
    "application/xml",
    "text/xml",
    "application/vnd.wap.wbxml",
    "application/x-x968-cross-cert",
    "application/x-x968-ca-cert",
    "application/x-x968-user-cert",
    "text/vnd.wap.si",
    "application/vnd.wap.sic",
    "text/vnd.wap.sl",
    "application/vnd.wap.slc",
    "text/vnd.wap.co",
    "application/vnd.wap.coc",
    "application/vnd.wap.multipart.related",
    "application/vnd.wap.sia",
    "text/vnd.wap.connectivity-xml",
    "application/vnd.wap.connectivity-wbxml",
    "application/pkcs7-mime",
    "application/vnd.wap.hashed-certificate",
    "application/vnd.wap.signed-certificate",
    "application/vnd.wap.cert-response",
    "application/xhtml+xml",
    "application/wml+xml",
    "text/css",
    "application/vnd.wap.mms-message",
    "application/vnd.wap.rollover-certificate",
    "application/vnd.wap.locc+wbxml",
    "application/vnd.wap.loc+xml",
    "application/vnd.syncml.dm+wbxml",
    "application/vnd.syncml.dm+xml",
    "application/vnd.syncml.notification",
    "application/vnd.wap.xhtml+xml",
    "application/vnd.wv.csp.cir",
    "application/vnd.oma.dd+xml",
    "application/vnd.oma.drm.message",
    "application/vnd.oma.drm.content",
    "application/vnd.oma.drm.rights+xml",
    "application/vnd.oma.drm.rights+wbxml",
    "application/vnd.wv.csp+xml",
    "application/vnd.wv.csp+wbxml",
];
/// The first number of table 40 that came with each version, and the first behind them all.
const MEDIA_SINCE: [(usize, EncodingVersion); 4] =
    [(0x37, V1_4), (0x35, V1_3), (0x27, V1_2), (0, V1_1)];
const MEDIA_END: usize = 0x40;

/// Table 41; the place between 0x7f and 0x81 is free.
const LANGUAGES: [&str; 0x8d] = [
    "*", "aa", "ab", "af", "am", "ar", "as", "ay", "az", "ba", "be", "bg", "bh", "bi", "bn", "bo",
    "br", "ca", "co", "cs", "cy", "da", "de", "dz", "el", "en", "eo", "es", "et", "eu", "fa", "fi",
    "fj", "ur", "fr", "uz", "ga", "gd", "gl", "gn", "gu", "ha", "he", "hi", "hr", "hu", "hy", "vi",
    "id", "wo", "xh", "is", "it", "yo", "ja", "jw", "ka", "kk", "za", "km", "kn", "ko", "ks", "ku",
    "ky", "zh", "ln", "lo", "lt", "lv", "mg", "mi", "mk", "ml", "mn", "mo", "mr", "ms", "mt", "my",
    "uk", "ne", "nl", "no", "oc", "om", "or", "pa", "pl", "ps", "pt", "qu", "zu", "rn", "ro", "ru",
    "rw", "sa", "sd", "sg", "sh", "si", "sk", "sl", "sm", "sn", "so", "sq", "sr", "ss", "st", "su",
    "sv", "sw", "ta", "te", "tg", "th", "ti", "tk", "tl", "tn", "to", "tr", "ts", "tt", "tw", "ug",
    "", "na", "fo", "fy", "ia", "vo", "ie", "ik", "yi", "iu", "kl", "la", "rm",
];

/// Character sets by their MIBenum (table 42, and others of IANA's that are in use).
const CHARSETS: [(u16, &str); 47] = [
    (0, "*"),
    (3, "us-ascii"),
    (4, "iso-8859-1"),
    (5, "iso-8859-2"),
    (6, "iso-8859-3"),
    (7, "iso-8859-4"),
    (8, "iso-8859-5"),
    (9, "iso-8859-6"),
    (10, "iso-8859-7"),
    (11, "iso-8859-8"),
    (12, "iso-8859-9"),
    (13, "iso-8859-10"),
    (17, "shift_jis"),
    (18, "euc-jp"),
    (37, "iso-2022-kr"),
    (38, "euc-kr"),
    (39, "iso-2022-jp"),
    (106, "utf-8"),
    (109, "iso-8859-13"),
    (110, "iso-8859-14"),
    (111, "iso-8859-15"),
    (112, "iso-8859-16"),
    (113, "gbk"),
    (114, "gb18030"),
    (1000, "iso-10646-ucs-2"),
    (1001, "iso-10646-ucs-4"),
    (1012, "utf-7"),
    (1013, "utf-16be"),
    (1014, "utf-16le"),
    (1015, "utf-16"),
    (1017, "utf-32"),
    (2025, "gb2312"),
    (2026, "big5"),
    (2084, "koi8-r"),
    (2085, "hz-gb-2312"),
    (2088, "koi8-u"),
    (2109, "windows-874"),
    (2250, "windows-1250"),
    (2251, "windows-1251"),
    (2252, "windows-1252"),
    (2253, "windows-1253"),
    (2254, "windows-1254"),
    (2255, "windows-1255"),
    (2256, "windows-1256"),
    (2257, "windows-1257"),
    (2258, "windows-1258"),
    (2259, "tis-620"),
];

/// Content-Encoding (§8.4.2.18).
const CODINGS: [&str; 3] = ["gzip", "compress", "deflate"];
/// Accept-Encoding since version 1.3 (§8.4.2.9).
const ACCEPTED_CODINGS: [&str; 4] = ["gzip", "compress", "deflate", "*"];
/// Accept-Ranges (§8.4.2.11).
const RANGES: [&str; 2] = ["none", "bytes"];
/// Connection (§8.4.2.16).
const CONNECTIONS: [&str; 1] = ["close"];
/// Transfer-Encoding (§8.4.2.46).
const TRANSFER_CODINGS: [&str; 1] = ["chunked"];
/// Expect.
const EXPECTATIONS: [&str; 1] = ["100-continue"];
/// X-WAP-Security.
const SECURITY: [&str; 1] = ["close-subordinate"];
/// Content-Disposition (§8.4.2.53).
pub(super) const DISPOSITIONS: [&str; 3] = ["form-data", "attachment", "inline"];
/// Cache-Control (§8.4.2.15).
pub(super) const CACHE_DIRECTIVES: [&str; 12] = [
    "no-cache",
    "no-store",
    "max-age",
    "max-stale",
    "min-fresh",
    "only-if-cached",
    "public",
    "private",
    "no-transform",
    "must-revalidate",
    "proxy-revalidate",
    "s-maxage",
];
/// TE, from 1.
pub(super) const TRANSFER_ENCODINGS: [&str; 7] =
    ["", "trailers", "chunked", "identity", "gzip", "compress", "deflate"];
/// Parameter SEC.
pub(super) const SECURITIES: [&str; 4] = ["NETWPIN", "USERPIN", "USERNETWPIN", "USERPINMAC"];
/// Applications of pushes, as registered.
pub(super) const APPLICATIONS: [&str; 11] = [
    "x-wap-application:*",
    "x-wap-application:push.sia",
    "x-wap-application:wml.ua",
    "x-wap-application:wta.ua",
    "x-wap-application:mms.ua",
    "x-wap-application:push.syncml",
    "x-wap-application:loc.ua",
    "x-wap-application:syncml.dm",
    "x-wap-application:drm.ua",
    "x-wap-application:emn.ua",
    "x-wap-application:wv.ua",
];
/// Codes of warnings (§8.4.2.51, those of RFC 2068), and what they are in HTTP/1.1.
pub(super) const WARNINGS: [(u8, u64); 6] =
    [(10, 110), (11, 111), (12, 112), (13, 113), (14, 214), (99, 199)];
/// Codes of Profile-Warning, what they are in HTTP, and the text there.
pub(super) const PROFILE_WARNINGS: [(u8, u64, &str); 7] = [
    (0x10, 100, "OK"),
    (0x11, 101, "used stale profile"),
    (0x12, 102, "not used profile"),
    (0x20, 200, "not applied"),
    (0x21, 201, "content selection applied"),
    (0x22, 202, "content generation applied"),
    (0x23, 203, "transformation applied"),
];

/// The value of a parameter (§8.4.2.4, Compact-value).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compact {
    Weight,
    Charset,
    Version,
    Integer,
    /// Text as it is, whether or not it is quoted in HTTP.
    Text,
    /// A token or a quoted string.
    TextValue,
    Field,
    Media,
    Nothing,
    Security,
    Date,
}

/// Table 38; a parameter's number is its place.
pub(super) const PARAMETERS: [(&str, EncodingVersion, Compact); 0x1e] = [
    ("q", V1_1, Compact::Weight),
    ("charset", V1_1, Compact::Charset),
    ("level", V1_1, Compact::Version),
    ("type", V1_1, Compact::Integer),
    ("uaprof", V1_1, Compact::TextValue),
    ("name", V1_1, Compact::Text),
    ("filename", V1_1, Compact::Text),
    ("differences", V1_1, Compact::Field),
    ("padding", V1_1, Compact::Integer),
    ("type", V1_2, Compact::Media),
    ("start", V1_2, Compact::Text),
    ("start-info", V1_2, Compact::Text),
    ("comment", V1_3, Compact::Text),
    ("domain", V1_3, Compact::Text),
    ("max-age", V1_3, Compact::Integer),
    ("path", V1_3, Compact::Text),
    ("secure", V1_3, Compact::Nothing),
    ("SEC", V1_4, Compact::Security),
    ("MAC", V1_4, Compact::TextValue),
    ("creation-date", V1_4, Compact::Date),
    ("modification-date", V1_4, Compact::Date),
    ("read-date", V1_4, Compact::Date),
    ("size", V1_4, Compact::Integer),
    ("name", V1_4, Compact::TextValue),
    ("filename", V1_4, Compact::TextValue),
    ("start", V1_4, Compact::TextValue),
    ("start-info", V1_4, Compact::TextValue),
    ("comment", V1_4, Compact::TextValue),
    ("domain", V1_4, Compact::TextValue),
    ("path", V1_4, Compact::TextValue),
];

fn is_same(text: &[u8], name: &str) -> bool {
    text.eq_ignore_ascii_case(name.as_bytes())
}

/// The number of a field: the last that `version` has.
pub(super) fn field(name: &[u8], version: EncodingVersion) -> Option<u8> {
    let code = FIELDS.iter().rposition(|row| row.since <= version && is_same(name, row.name))?;
    u8::try_from(code).ok()
}

/// The number of a parameter, the last that `version` has, and how its value is encoded.
pub(super) fn parameter(name: &[u8], version: EncodingVersion) -> Option<(u8, Compact)> {
    let of_version =
        |row: &(&str, EncodingVersion, Compact)| row.1 <= version && is_same(name, row.0);
    let code = PARAMETERS.iter().rposition(of_version)?;
    let (_, _, compact) = PARAMETERS.get(code)?;
    Some((u8::try_from(code).ok()?, *compact))
}

/// The number of a media type.
pub(super) fn media(text: &[u8], version: EncodingVersion) -> Option<u8> {
    let number = MEDIA.iter().take(MEDIA_END).position(|name| is_same(text, name))?;
    let (_, since) = MEDIA_SINCE.iter().find(|(first, _)| number >= *first)?;
    u8::try_from(number).ok().filter(|_| *since <= version)
}

/// The media type of a number.
pub(super) fn media_text(number: u64) -> Option<&'static str> {
    MEDIA.get(usize::try_from(number).ok()?).copied()
}

impl Names {
    /// The number that stands for `text`.
    pub(super) fn number(self, text: &[u8], version: EncodingVersion) -> Option<u64> {
        if text.is_empty() {
            // Numbers that stand for nothing have no name.
            return None;
        }
        let place = |names: &[&str]| names.iter().position(|name| is_same(text, name));
        match self {
            Self::Charset => {
                let (number, _) = CHARSETS.iter().find(|(_, name)| is_same(text, name))?;
                // Any character set has a number since version 1.3 (§8.4.2.8).
                Some(u64::from(*number)).filter(|number| *number != 0 || version >= V1_3)
            }
            Self::Field => field(text, version).map(u64::from),
            Self::Language => Some(place(&LANGUAGES)? as u64),
            Self::Method => Some(Method::of_name(text)? as u64),
            Self::Listed(names) => Some(place(names)? as u64),
        }
    }

    /// What `number` stands for.
    pub(super) fn text(self, number: u64) -> Option<&'static str> {
        let place = usize::try_from(number).ok()?;
        let name = match self {
            Self::Charset => {
                let row = CHARSETS.iter().find(|(other, _)| u64::from(*other) == number);
                row.map(|(_, name)| *name)
            }
            Self::Field => FIELDS.get(place).map(|row| row.name),
            Self::Language => LANGUAGES.get(place).copied(),
            Self::Method => Method::of_type(u8::try_from(number).ok()?).map(Method::name),
            Self::Listed(names) => names.get(place).copied(),
        };
        name.filter(|name| !name.is_empty())
    }
}
