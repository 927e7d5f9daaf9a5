use proptest::prelude::*;

use super::*;

const SOAP_11: &str = "http://schemas.xmlsoap.org/soap/envelope/";
const SOAP_12: &str = "http://www.w3.org/2003/05/soap-envelope";
const WSSE: &str = "http://docs.oasis-open.org/wss/2004/01/\
                    oasis-200401-wss-wssecurity-secext-1.0.xsd";

fn soap(envelope: &str, prefix: &str, token: &str) -> String {
    format!(
        "<?xml version='1.0'?><s:Envelope xmlns:s='{envelope}'><s:Header>\
         <{prefix}Security xmlns{colon}='{WSSE}' s:mustUnderstand='1'>{token}\
         </{prefix}Security><id>a-17</id></s:Header><s:Body><GetStatus/></s:Body>\
         </s:Envelope>",
        colon = if prefix.is_empty() {
            String::new()
        } else {
            format!(":{}", prefix.trim_end_matches(':'))
        },
    )
}

/// Tokens of each kind; what is secret has `HUSH` in it, and most name `alice`.
fn tokens(prefix: &str) -> Vec<(String, bool)> {
    let username = format!(
        "<{prefix}UsernameToken><{prefix}Username>alice</{prefix}Username>\
         <{prefix}Password Type='x#PasswordText'>HUSH&amp;1</{prefix}Password>\
         <{prefix}Nonce>HUSH2</{prefix}Nonce></{prefix}UsernameToken>"
    );
    let binary = format!("<{prefix}BinarySecurityToken>alice HUSH</{prefix}BinarySecurityToken>");
    let signature = "<d:Signature xmlns:d='http://www.w3.org/2000/09/xmldsig#'><d:SignedInfo/>\
                     <d:SignatureValue><![CDATA[HUSH]]></d:SignatureValue></d:Signature>";
    let saml = "<a:Assertion xmlns:a='urn:oasis:names:tc:SAML:2.0:assertion' ID='HUSH'>\
                <a:Subject><a:NameID>alice</a:NameID></a:Subject></a:Assertion>";
    vec![(username, true), (binary, true), (signature.to_owned(), false), (saml.to_owned(), true)]
}

#[test]
fn headers_of_ws_security_are_cut_in_soap_11_and_12_with_any_prefix() {
    for envelope in [SOAP_11, SOAP_12] {
        for prefix in ["wsse:", "o:", "Security:", ""] {
            for (token, names) in tokens(prefix) {
                let message = soap(envelope, prefix, &token);
                assert!(message.contains("HUSH"));
                let kept = String::from_utf8(cut(message.as_bytes()).unwrap()).unwrap();
                assert!(!kept.contains("HUSH") && !kept.contains("alice"), "{kept}");
                assert!(kept.contains("<id>a-17</id>") && kept.contains("GetStatus"), "{kept}");
                let whose = claims(message.as_bytes());
                assert_eq!(whose.is_ok(), names, "{message}");
                assert!(!names || String::from_utf8(whose.unwrap()).unwrap().contains("alice"));
            }
        }
    }
}

#[test]
fn tokens_outside_of_a_header_are_cut_as_well() {
    for (message, kept) in [
        ("<a><Signature>HUSH</Signature><b/></a>", "<a><b/></a>"),
        ("<a><x:password xmlns:x='u'>HUSH</x:password>1</a>", "<a>1</a>"),
        ("<a><login user='u' passWord='HUSH'/>1</a>", "<a>1</a>"),
        ("<a>Authorization: Basic HUSH</a>", "<a></a>"),
        ("<a><b>&lt;UsernameToken>HUSH</b></a>", "<a><b></b></a>"),
        ("<a><![CDATA[<wsse:UsernameToken>HUSH]]></a>", "<a></a>"),
        ("<a><!-- Cookie: HUSH --><b/></a>", "<a><b/></a>"),
        ("<Assertion>HUSH</Assertion>", ""),
        (
            "{\"user\": 1, \"password\": \"HU\\\"SH\", \"b\": 2}",
            "{\"user\": 1, \"password\": , \"b\": 2}",
        ),
        ("[{\"access_token\":{\"x\":[\"HUSH}\"]}}, 3]", "[{\"access_token\":}, 3]"),
        ("{\"apiKey\": 17}", "{\"apiKey\": }"),
        ("{\"token\": null}", "{\"token\": }"),
        ("<a token='Profile_1'/>", "<a token='Profile_1'/>"),
        ("{\"p\\u0061ssword\": \"HUSH\"}", "{\"p\\u0061ssword\": }"),
        ("{\"head\": \"Bearer HUSH\", \"a\": [1]}", "{\"head\": , \"a\": [1]}"),
        ("{\"refreshToken\": \"HUSH\", \"a\": 1}", "{\"refreshToken\": , \"a\": 1}"),
        ("{\"x-csrf-token\": \"HUSH\", \"pwd\": 1}", "{\"x-csrf-token\": , \"pwd\": }"),
        ("{\"result\": \"pass\"}", "{\"result\": \"pass\"}"),
        ("<a><session_id>HUSH</session_id><Pin>HUSH</Pin>1</a>", "<a>1</a>"),
        ("<a><?p password HUSH?>1</a>", "<a>1</a>"),
    ] {
        let cut = String::from_utf8(cut(message.as_bytes()).unwrap()).unwrap();
        assert_eq!(cut, kept, "{message}");
    }
}

#[test]
fn what_cannot_be_read_is_not_kept() {
    let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe9</a>";
    let utf16 = b"<\0a\0/\0>\0";
    for message in [
        &b"user=a&password=b"[..],
        b"",
        b"<a>",
        b"<a></b>",
        b"{\"a",
        b"{\"password\": ",
        latin,
        utf16,
        b"--boundary\r\n<a/>",
        // What is secret stands beside its name.
        b"<member><name>password</name><value>HUSH</value></member>",
        b"[{\"name\": \"x-api-key\", \"value\": \"HUSH\"}]",
        b"<!DOCTYPE a [<!ENTITY e 'HUSH'>]><a/>",
    ] {
        assert!(cut(message).is_err(), "{}", String::from_utf8_lossy(message));
    }
    assert!(claims(utf16).is_err());
    assert!(claims(b"user=a").is_err());
    assert_eq!(claims(b"<a/>").unwrap(), b"");
    for (media, readable) in [
        ("text/xml; charset=utf-8", true),
        ("application/soap+xml", true),
        ("Application/JSON", true),
        ("text/html", false),
        ("multipart/related", false),
        ("application/x-www-form-urlencoded", false),
        ("", false),
    ] {
        assert_eq!(is_readable(media), readable, "{media}");
    }
}

#[test]
fn who_proves_another_identity_in_the_body_is_another() {
    let whose = |message: &str| claims(message.as_bytes()).unwrap();
    for form in [
        "{\"token\": \"WHO\", \"q\": 1}",
        "{\"a\": {\"apiKey\": \"WHO\"}}",
        "<a><password>WHO</password></a>",
        "<a><login secret='WHO'/></a>",
        "<a><SessionID>WHO</SessionID></a>",
    ] {
        let [alice, mallory] = ["alice", "mallory"].map(|who| whose(&form.replace("WHO", who)));
        assert!(alice != mallory && !alice.is_empty(), "{form}");
        assert_eq!(alice, whose(&form.replace("WHO", "alice")), "{form}");
    }
    // A camera's profile is nobody's.
    assert_eq!(whose("<a token='Profile_1'><ProfileToken>p</ProfileToken></a>"), b"");
}

fn kept(message: &str) -> Option<String> {
    cut(message.as_bytes()).ok().map(|kept| String::from_utf8(kept).unwrap())
}

/// Every message is refused, or loses HUSH and keeps `beside`.
fn assert_hushed(messages: &[String], beside: &str) {
    let leaks: Vec<_> = messages
        .iter()
        .filter(|message| {
            assert!(message.contains("HUSH"), "{message}");
            kept(message).is_some_and(|kept| kept.contains("HUSH") || !kept.contains(beside))
        })
        .collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

/// Names of keys, tokens and codes that prove who somebody is.
const SECRET_NAMES: [&str; 26] = [
    "auth",
    "accessKey",
    "secretAccessKey",
    "sessionKey",
    "masterKey",
    "encryption_key",
    "signingKey",
    "SharedKey",
    "signature",
    "sig",
    "jwtToken",
    "clientAssertion",
    "assertion",
    "samlResponse",
    "saml_response",
    "mfaCode",
    "mfa_code",
    "totp",
    "totpCode",
    "preSharedKey",
    "oauth_token",
    "oauth_signature",
    "x-api-token",
    "authenticationToken",
    "code_verifier",
    "subscription-key",
];

/// Nothing is behind the sign, or only the name.
#[test]
fn a_name_with_an_equals_sign_is_still_a_name() {
    for message in [
        "<attr><name>cn=password</name><value>HUSH</value></attr>",
        "<attr name='cn=password'/>",
        "{\"name\": \"password=\", \"value\": \"HUSH\"}",
        "{\"name\": \"password= \", \"value\": \"HUSH\"}",
    ] {
        let kept = cut(message.as_bytes()).map(|kept| String::from_utf8(kept).unwrap());
        assert!(kept.is_err(), "{message}: {kept:?}");
    }
}

#[test]
fn words_that_only_sound_so_are_kept() {
    for message in [
        "<a><totPrice>12.30</totPrice><TotPassengers>2</TotPassengers></a>",
        "<a><AccountKey>7</AccountKey></a>",
        "{\"totPages\": 3, \"bypassKey\": 1, \"compassKey\": \"N\"}",
        "<a xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'><b xsi:type='t:Secretary'/>\
         <c xsi:type='ns1:Credentials'>x</c></a>",
    ] {
        let kept = cut(message.as_bytes()).map(|kept| String::from_utf8(kept).unwrap());
        assert_eq!(kept.as_deref().ok(), Some(message), "{message}");
        assert_eq!(claims(message.as_bytes()).unwrap(), b"", "{message}");
    }
}

#[test]
fn keys_and_codes_are_cut_by_their_names() {
    let forms = [
        "{\"NAME\": \"HUSH\", \"b\": 2}",
        "{\"NAME\": {\"c\": [\"HUSH\"]}, \"b\": 2}",
        "<a><NAME>HUSH</NAME>\"b\": 2</a>",
        "<a><c NAME='HUSH'/>\"b\": 2</a>",
        "<a><c>http://h/?q=1&amp;NAME=HUSH</c>\"b\": 2</a>",
        "<a><c>{\"NAME\":\"HUSH\"}</c>\"b\": 2</a>",
        "<a><c>&lt;NAME>HUSH&lt;/NAME></c>\"b\": 2</a>",
    ];
    for form in forms {
        let all = SECRET_NAMES.map(|name| form.replace("NAME", name));
        assert_hushed(&all, "\"b\": 2");
    }
}

/// Texts that are secret as they stand, whatever the name beside them.
const SECRET_TEXTS: [&str; 32] = [
    "https://user:HUSH@host/path",
    "see postgres://app:HUSH@10.0.0.1:5432/db here",
    "amqp://:HUSH@[::1]:5672/",
    "https://HUSH0123456789abcdef@github.com/a/b.git",
    "https://user:p/HUSH@host/path",
    "http://h/?next=https%3A%2F%2Fuser%3AHUSH%40host%2F",
    "https://h/p?a=1&access_token=HUSH",
    "https://h/p?access_token=HUSH",
    "https://h/p#access_token=HUSH&state=1",
    "https://h.blob.net/c?sv=2022&sig=HUSH%3D",
    "https://h/p?X-Amz-Signature=HUSH",
    "https://h/p?X-Amz-Credential=HUSH/2024/s3",
    "https://h/p?X-Goog-Signature=HUSH",
    "https://h/p?token=HUSH",
    "https://h/p?key=AIzaSyHUSH0123456789abcdef",
    "http://h/?next=https%3A%2F%2Fh%2F%3Faccess_token%3DHUSH",
    "http://h/?next=https%3A%2F%2Fh%2F%3Fa%3D1%26sig%3DHUSH",
    "api_key=HUSH",
    "api_key = HUSH",
    "X-Api-Key: HUSH",
    "Server=h;Uid=u;Pwd=HUSH;",
    "AccountName=a;AccountKey=HUSHa9Zk3LmQ0pXv7RtB2cDw==",
    "Basic dXNlcjpHUSH=",
    "basic  dXNlcjpHUSH1",
    "Proxy says Basic YWxhZGRpbjpHUSH1",
    "Negotiate YIIJvwYGKwYBBQUCoHUSH0",
    "ApiKey HUSH0123456789abcdef",
    "Token HUSH0123456789abcdef",
    "Digest realm='r', cnonce='HUSH'",
    "Digest username='alice', response='HUSH'",
    "-----BEGIN RSA PRIVATE KEY-----\nHUSH\n-----END RSA PRIVATE KEY-----",
    "it is eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.HUSH",
];

#[test]
fn texts_that_are_secret_are_cut_wherever_they_stand() {
    for form in [
        "<a><c>TEXT</c><b>2</b></a>",
        "<a><c d=\"TEXT\"/><b>2</b></a>",
        "<a><!-- TEXT --><b>2</b></a>",
        "<a><?c TEXT?><b>2</b></a>",
    ] {
        let all = SECRET_TEXTS.map(|text| form.replace("TEXT", &text.replace('&', "&amp;")));
        assert_hushed(&all, "<b>2</b>");
    }
    for form in ["{\"a\": \"TEXT\", \"b\": 2}", "[[\"TEXT\"], {\"b\": 2}]"] {
        let all = SECRET_TEXTS.map(|text| form.replace("TEXT", &text.replace('\n', "\\n")));
        assert_hushed(&all, "\"b\": 2");
        // As some programs escape them.
        let all = all.map(|text| text.replace('/', "\\/").replace('=', "\\u003d"));
        assert_hushed(&all.map(|text| text.replace('&', "\\u0026")), "\"b\": 2");
    }
}

#[test]
fn a_value_beside_the_name_of_a_secret_is_not_kept() {
    for message in [
        "<a><header name=\"Authorization\" value=\"Basic HUSH\"/><b/></a>",
        "<a><header name='Authorization'>HUSH</header><b/></a>",
        "<a><k n='x-api-key'/><v>HUSH</v></a>",
        "<a><add key='pass&#x77;ord' value='HUSH'/></a>",
        "<a><add key='accessKey' value='HUSH'/></a>",
        "[{\"name\": \"masterKey\", \"value\": \"HUSH\"}]",
        "[{\"name\": \"pass\\u0077ord\", \"value\": \"HUSH\"}]",
        "<!DOCTYPE a SYSTEM 'http://u:HUSH@h/a.dtd'><a/>",
    ] {
        assert_eq!(kept(message), None, "{message}");
    }
    assert_eq!(kept("<a><?password HUSH?></a>").as_deref(), Some("<a></a>"));
}

#[test]
fn what_is_ordinary_is_kept() {
    for text in [
        "https://host/@user",
        "https://host/p?mail=a@b",
        "https://host#a@b",
        "https://host:8080/@user",
        "mailto:a@b",
        "http://host, mail a@b",
        "ssh://git@host/repo",
        "Basic information",
        "BASIC INFORMATION",
        "Basic JavaScript",
        "Basic Client/Server 2024-01-01",
        "Visual Basic dXNl",
        "Token authentication",
        "Token Profile_1",
        "Digest representation",
        "token 1: key=value, author: somebody",
        "urn:ogc:def:crs:EPSG::4326",
        "2024-01-01T12:30:00Z",
        "https://h/wms?request=GetMap&layers=key&width=256",
        "https://h/p?key=value&session=12&code=DE",
        "../gml#point.17",
        "33-429-790-6131",
        "rdnmd9c8EG1EIAYY3LPVa4yUNx6OwyVaQ",
        "eyJ",
        "eyJournal.of",
        "aGVsbG8gd29ybGQ=",
        "-----BEGIN CERTIFICATE-----",
        "100%",
        "a:",
        "=",
    ] {
        for form in ["<a><c>TEXT</c></a>", "<a x='TEXT'/>", "{\"a\": \"TEXT\"}"] {
            let message = form.replace("TEXT", &text.replace('&', "&amp;"));
            assert_eq!(kept(&message).as_ref(), Some(&message));
        }
    }
    for message in [
        "<a token='Profile_1'><ProfileToken>Profile_1</ProfileToken></a>",
        "<a><PresetToken>20</PresetToken><NodeToken>n</NodeToken></a>",
        "<map key='x'><primaryKey/><keyword>k</keyword><author/><authority/></map>",
        "<session>1</session>",
        "<r><o_orderkey>1</o_orderkey><c_custkey>2</c_custkey><l_partkey>3</l_partkey></r>",
        "<g xmlns:l='u' l:href='http://www.w3.org/a?b=c#d'><e href='#key'/></g>",
        "{\"key\": 1, \"primaryKey\": 2, \"author\": \"a\", \"authority\": \"b\", \"session\": 3}",
        "{\"publicKey\": \"k\", \"design\": 1, \"signatures\": 2, \"l_partkey\": 3}",
        "{\"a\": \"x\\\\y\\/z\", \"b\": \"\\ud83d\\ude00\"}",
    ] {
        assert_eq!(kept(message).as_deref(), Some(message));
    }
}

proptest! {
    #[test]
    fn nothing_panics_and_nothing_is_added(junk: Vec<u8>, text in "[<>/a\"{}:,\\\\ =]{0,60}") {
        for message in [&junk[..], text.as_bytes()] {
            let _ = claims(message);
            if let Ok(kept) = cut(message) {
                prop_assert!(kept.len() <= message.len());
            }
        }
    }
}
