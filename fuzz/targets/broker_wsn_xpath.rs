//! Any expression on any document, split at the first zero byte: nothing panics, and it ends.
#![no_main]

use broker::{Tree, XPathFilter};
use libfuzzer_sys::fuzz_target;

const DOCUMENT: &str = "<t:track xmlns:t='urn:t' id='7'><!-- c --><?p i?><t:speed unit='m/s'>12.5\
</t:speed><n>1</n><n>2</n><n><n>3</n></n></t:track>";

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (expression, document) = text.split_once('\0').unwrap_or((text, DOCUMENT));
    let resolve = |prefix: &str| (prefix == "t").then(|| "urn:t".to_owned());
    let Ok(filter) = XPathFilter::compile(expression, &resolve) else { return };
    if let Ok(tree) = Tree::parse(document) {
        let _ = filter.is_match(&tree);
    }
    let tree = Tree::parse(DOCUMENT).expect("it is well-formed");
    assert_eq!(filter.is_match(&tree), filter.is_match(&tree));
});
