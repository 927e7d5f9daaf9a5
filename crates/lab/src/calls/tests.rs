//! Files of studies, and runs that are kept.

use std::fs;

use record::calls::CallsRun;

use super::plan::{MethodPlan, Plan};
use super::run::keep;
use super::*;
use crate::experiment::scratch::Scratch;

const GOOD: &str = "
name = \"a\"
count = 10
warm_up = 2
[[link]]
name = \"one host\"
[[link]]
name = \"adsl\"
preset = \"adsl\"
set = [\"delay=42.5 ms\"]
[[way]]
name = \"HTTP\"
over = \"http\"
form = \"xml\"
[[way]]
name = \"WSP+WBXML\"
over = \"wsp\"
form = \"wbxml\"
[[method]]
name = \"nop\"
[[method]]
name = \"getString\"
sizes = [10, 100]
";

#[test]
fn a_study_is_read_whole() {
    let mut plan = Plan::parse(GOOD).unwrap();
    assert_eq!((plan.count, plan.warm_up, plan.timeout_s), (10, 2, 60));
    let method = |name: &str, size| MethodPlan { name: name.to_owned(), size };
    let sizes = [("nop", None), ("getString", Some(10)), ("getString", Some(100))];
    assert_eq!(plan.methods, sizes.map(|(name, size)| method(name, size)));
    assert!(plan.links[0].config.is_none());
    let settings = plan.links[1].config.as_ref().unwrap().settings();
    assert!(settings.iter().any(|(_, value)| value == "42.5 ms"), "{settings:?}");
    plan.restrict(&["adsl".to_owned()], &[]).unwrap();
    assert_eq!((plan.links.len(), plan.ways.len()), (1, 2));
    let error = plan.restrict(&[], &["x".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("no way 'x'") && error.contains("HTTP, WSP+WBXML"), "{error}");
}

#[test]
fn what_is_wrong_in_a_study_is_named() {
    for (old, new, what) in [
        ("count = 10", "count = 0", "'count' is 0; choose 1 to 100000"),
        ("warm_up = 2", "warm_up = 11", "warm_up is 11; choose 0 to 10"),
        ("warm_up = 2", "warmup = 2", "has no key 'warmup'"),
        ("preset = \"adsl\"", "preset = \"adls\"", "link 'adsl'"),
        ("preset = \"adsl\"", "", "is one host"),
        ("preset = \"adsl\"", "preset = \"adsl\"\nslowdown = 0", "choose 1 to 1000"),
        ("42.5 ms", "fast", "link 'adsl'"),
        ("over = \"wsp\"", "over = \"udp\"", "choose one of http, wsp, coap"),
        ("over = \"wsp\"", "over = \"coap\"", "no content format of CoAP"),
        ("over = \"wsp\"", "over = \"wsp\"\npair = true", "not of wsp"),
        ("name = \"HTTP\"", "name = \"wsp+wbxml\"", "two of way are called"),
        ("name = \"HTTP\"", "name = \"../x\"", "is no name"),
        ("sizes = [10, 100]", "", "needs 'sizes'"),
        ("sizes = [10, 100]", "sizes = [-1]", "a size is a number"),
        ("[[link]]", "[[lnk]]", "has no key 'lnk'"),
        ("count = 10", "count = ", "line 3"),
    ] {
        let text = GOOD.replacen(old, new, 1);
        assert_ne!(text, GOOD);
        let error = Plan::parse(&text).unwrap_err();
        assert!(error.contains(what) && !error.contains('\n'), "{new}: {error}");
    }
}

#[test]
fn the_study_that_comes_with_longwire_is_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/wap.toml");
    let plan = Plan::read(path.as_ref()).unwrap();
    assert!(plan.count >= 100);
    let links: Vec<&str> = plan.links.iter().map(|link| &*link.name).collect();
    assert_eq!(links, ["same host", "slow client", "gprs", "adsl"]);
    assert_eq!(plan.links[1].slowdown, 50);
}

#[test]
fn runs_are_kept_and_read_back() {
    let scratch = Scratch::new().unwrap();
    let run = CallsRun { link: "gprs".to_owned(), ..CallsRun::default() };
    keep(&scratch.path().join("a.json"), &run).unwrap();
    fs::write(scratch.path().join("notes.txt"), "no run").unwrap();
    assert_eq!(load(scratch.path()).unwrap(), [run]);
    fs::write(scratch.path().join("b.json"), "{").unwrap();
    assert!(load(scratch.path()).unwrap_err().to_string().contains("b.json is no run"));
}
