//! Names that say that what they name is secret.

/// Elements that are cut with all that they hold: of WS-Security 1.1.1, XML Signature and
/// Encryption, WS-Trust, SAML, and names that say so themselves.
const ELEMENTS: [&str; 19] = [
    "security",
    "usernametoken",
    "binarysecuritytoken",
    "securitytokenreference",
    "securitycontexttoken",
    "requestedsecuritytoken",
    "binarysecret",
    "signature",
    "signaturevalue",
    "encrypteddata",
    "encryptedkey",
    "ciphervalue",
    "assertion",
    "encryptedassertion",
    "nonce",
    "setcookie",
    "set-cookie",
    "proxyauthorization",
    "proxy-authorization",
];
/// Elements that tell who somebody is.
const WHO: [&str; 5] =
    ["username", "binarysecuritytoken", "nameid", "nameidentifier", "subjectname"];
/// Parts of names, of elements, attributes and members, that say so themselves, without what words
/// are joined with. A token alone need be none: cameras call each of their profiles so. Nor a key:
/// tables have them.
static PARTS: Words = Words::new(&[
    "accesskey",
    "accesstoken",
    "amzsignature",
    "apikey",
    "apitoken",
    "authcode",
    "authenticationtoken",
    "authkey",
    "authorization",
    "authtoken",
    "bearertoken",
    "clientassertion",
    "codeverifier",
    "cookie",
    "credential",
    "csrf",
    "decryptionkey",
    "encryptionkey",
    "googsignature",
    "idtoken",
    "logintoken",
    "masterkey",
    "mfacode",
    "oauthsignature",
    "oauthtoken",
    "onetimecode",
    "otpcode",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "refreshtoken",
    "samlassertion",
    "samlresponse",
    "samltoken",
    "secret",
    "securitytoken",
    "sessionid",
    "sessionkey",
    "sessiontoken",
    "sharedkey",
    "signingkey",
    "subscriptionkey",
    "verificationcode",
    "xsrf",
]);
/// A part too short to be looked for in texts: in some thousand random ones it is found.
static SHORT_PARTS: Words = Words::new(&["jwt"]);
/// Names that say so as a whole.
static WHOLE: Words = Words::new(&[
    "assertion",
    "auth",
    "bearer",
    "jwt",
    "otp",
    "pass",
    "passkey",
    "pin",
    "psk",
    "pwd",
    "sid",
    "sig",
    "signature",
    "totp",
    "totpcode",
]);
/// What joins two words of a name is no longer than this.
const MAX_JOINT_BYTES: usize = 4;
/// The longest text that may be the name of what stands beside it.
pub(super) const MAX_NAME_BYTES: usize = 48;

/// Words in small letters, sorted, and found by their first two letters.
pub(super) struct Words {
    words: &'static [&'static str],
    /// Where those begin that begin with a letter; behind the last, the end.
    starts: [usize; 27],
    /// The second letters that follow a first, one bit each.
    seconds: [u32; 26],
}

impl Words {
    pub(super) const fn new(words: &'static [&'static str]) -> Self {
        let (mut starts, mut seconds) = ([0; 27], [0; 26]);
        let mut at = 0;
        while at < words.len() {
            let word = words[at].as_bytes();
            let first = (word[0] - b'a') as usize;
            seconds[first] |= 1 << (word[1] - b'a');
            let mut later = first + 1;
            while later < 27 {
                starts[later] = at + 1;
                later += 1;
            }
            at += 1;
        }
        Self { words, starts, seconds }
    }

    /// Those that begin with this letter, in whatever case.
    fn of(&self, letter: usize) -> &'static [&'static str] {
        let start = self.starts.get(letter).copied().unwrap_or_default();
        let end = self.starts.get(letter + 1).copied().unwrap_or_default();
        self.words.get(start..end).unwrap_or_default()
    }

    /// Those that may begin a text, by its first two letters.
    #[inline]
    pub(super) fn beginning(&self, text: &[u8]) -> &'static [&'static str] {
        let [first, second, ..] = text else { return &[] };
        let (first, second) = (letter(*first), letter(*second));
        match self.seconds.get(first) {
            Some(seconds) if second < 26 && (seconds >> second) & 1 == 1 => self.of(first),
            _ => &[],
        }
    }

    /// Whether any is in a name.
    fn are_in(&self, name: &[u8]) -> bool {
        name.iter().enumerate().any(|(at, byte)| {
            let letter = letter(*byte);
            let Some(seconds) = self.seconds.get(letter).filter(|seconds| **seconds != 0) else {
                return false;
            };
            // The second letter may stand behind a joint.
            let rest = name.get(at..).unwrap_or_default();
            let fits = match rest.get(1) {
                Some(next) if next.is_ascii_alphabetic() => {
                    (seconds >> self::letter(*next)) & 1 == 1
                }
                Some(next) => !next.is_ascii_digit(),
                None => false,
            };
            fits && self.of(letter).iter().any(|word| is_spelled(rest, word))
        })
    }

    /// Whether one is the name, whatever joins its parts.
    fn have(&self, name: &[u8]) -> bool {
        let letters = || name.iter().filter(|byte| byte.is_ascii_alphanumeric());
        let words = letters().next().map_or(&[][..], |first| self.of(letter(*first)));
        words.iter().any(|word| letters().map(u8::to_ascii_lowercase).eq(word.bytes()))
    }
}

/// Which letter it is, in whatever case; 26 or more for none.
fn letter(byte: u8) -> usize {
    usize::from((byte | 0x20).wrapping_sub(b'a'))
}

/// Whether a name begins with the word, whatever joins its parts.
fn is_spelled(name: &[u8], word: &str) -> bool {
    let (mut joint, mut left) = (0, word.bytes());
    let Some(mut wanted) = left.next() else { return true };
    for byte in name {
        if byte.eq_ignore_ascii_case(&wanted) {
            match left.next() {
                Some(next) => (wanted, joint) = (next, 0),
                None => return true,
            }
        } else if byte.is_ascii_alphanumeric() || joint == MAX_JOINT_BYTES {
            return false;
        } else {
            joint += 1;
        }
    }
    false
}

/// Whether a name says that what it names is secret.
#[must_use]
pub fn says_so(name: &str) -> bool {
    is_secret(name.as_bytes())
}

/// [`says_so`] of bytes.
pub(super) fn is_secret(name: &[u8]) -> bool {
    WHOLE.have(name) || has_part(name)
}

/// Whether a part of a name says so.
pub(super) fn has_part(name: &[u8]) -> bool {
    PARTS.are_in(name) || SHORT_PARTS.are_in(name)
}

/// Whether a text may be the name of a secret that stands beside it, which may be anywhere.
pub(super) fn names_secret(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    text.len() <= MAX_NAME_BYTES && PARTS.are_in(text) && !text.iter().any(u8::is_ascii_whitespace)
}

/// What an element or an attribute says by its name.
#[derive(Clone, Copy)]
pub(super) struct Says {
    /// An element that is cut, which need not tell one sender from another.
    pub(super) listed: bool,
    pub(super) secret: bool,
    pub(super) who: bool,
}

impl Says {
    pub(super) fn of(local: &str) -> Self {
        let is = |word: &&str| word.eq_ignore_ascii_case(local);
        let (listed, who) = (ELEMENTS.iter().any(is), WHO.iter().any(is));
        Self { listed, secret: says_so(local), who }
    }
}

#[test]
fn words_are_sorted() {
    for words in [&PARTS, &SHORT_PARTS, &WHOLE, &super::text::MARKS] {
        assert!(words.words.is_sorted());
        for word in words.words {
            assert!(words.beginning(word.as_bytes()).contains(word), "{word}");
        }
    }
}
