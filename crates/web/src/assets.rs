//! What pages load: own modules, one style sheet, one picture; in the binary.

/// One file.
#[derive(Debug)]
pub struct Asset {
    /// Its name.
    pub name: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// Its contents.
    pub bytes: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! assets {
    ($($name:literal $kind:expr),* $(,)?) => {
        &[$(Asset {
            name: $name,
            kind: $kind,
            bytes: include_bytes!(concat!("../assets/", $name)),
        }),*]
    };
}

/// All of them.
pub static ASSETS: &[Asset] = assets![
    "style.css" "text/css; charset=utf-8",
    "icon.svg" "image/svg+xml",
    "common.js" SCRIPT,
    "chart.js" SCRIPT,
    "links.js" SCRIPT,
    "link.js" SCRIPT,
    "runs.js" SCRIPT,
    "run.js" SCRIPT,
];

/// Where assets are: with what tells one build's from another's, so that browsers may keep them.
/// They are in one folder, since modules name each other by relative addresses.
#[must_use]
pub fn folder() -> String {
    format!("/assets/{VERSION:016x}")
}

/// The asset at a path.
#[must_use]
pub fn find(path: &str) -> Option<&'static Asset> {
    let name = path.strip_prefix(&folder())?.strip_prefix('/')?;
    ASSETS.iter().find(|asset| asset.name == name)
}

static VERSION: u64 = {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut place = 0;
    while place < ASSETS.len() {
        hash = mixed(hash, ASSETS[place].bytes);
        place += 1;
    }
    hash
};

/// FNV-1a over eight bytes at a time: it tells builds apart, nothing hangs on it.
const fn mixed(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut place = 0;
    while place < bytes.len() {
        let mut word = 0;
        let mut of_word = 0;
        while of_word < 8 && place < bytes.len() {
            word = (word << 8) | bytes[place] as u64;
            place += 1;
            of_word += 1;
        }
        hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_of_the_folder_is_embedded_and_asks_nobody_else() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mut known: Vec<&str> = ASSETS.iter().map(|asset| asset.name).collect();
        known.sort_unstable();
        assert_eq!(names, known);
        for asset in ASSETS {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            let foreign = text.replace("http://www.w3.org/", "");
            assert!(!foreign.contains("://"), "{}", asset.name);
            assert!(text.lines().all(|line| line.chars().count() <= 110), "{}", asset.name);
            assert!(text.lines().count() <= 800, "{}", asset.name);
        }
    }

    #[test]
    fn assets_are_few_bytes_even_as_they_are() {
        /// What a page over a tunnel may take.
        const MAX_BYTES: usize = 150_000;
        let all: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(all <= MAX_BYTES, "{all}");
    }

    #[test]
    fn assets_are_found_where_pages_look_for_them() {
        let path = format!("{}/style.css", folder());
        assert_eq!(find(&path).unwrap().name, "style.css");
        for path in ["/assets/style.css", "/style.css", &format!("{}/../style.css", folder())] {
            assert!(find(path).is_none(), "{path}");
        }
    }
}
