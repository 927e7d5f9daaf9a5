//! How the pages are used: by keys alone, on a narrow screen, on paper.

use super::serving::{Lab, Ui, browser, keep};

fn pages(ui: &Ui, lab: &Lab) -> Vec<(&'static str, String)> {
    [
        ("links", "/".to_string()),
        ("link", format!("/links/{}", lab.0)),
        ("runs", "/runs".to_string()),
        ("results", "/results".to_string()),
    ]
    .map(|(name, path)| (name, format!("http://{}{path}", ui.host)))
    .to_vec()
}

#[test]
fn pages_fit_a_narrow_screen_and_paper_in_both_schemes() {
    let Some(browser) = browser() else { return };
    let Some(lab) = Lab::up("narrow", "los") else { return };
    let ui = Ui::start();
    let tab = browser.tab(390, 844).unwrap();
    tab.open(&ui.url).unwrap();
    for (name, url) in pages(&ui, &lab) {
        for (width, scheme) in [(1280, "light"), (1280, "dark"), (390, "dark"), (390, "light")] {
            tab.size(width, 844).unwrap();
            tab.media(scheme, "screen").unwrap();
            tab.open(&url).unwrap();
            tab.until("document.fonts.status === 'loaded'").unwrap();
            if name == "link" {
                tab.click("#ping").unwrap();
                let pinged = "document.querySelector('#pinged').textContent";
                tab.until(&format!("{pinged}.includes('came back')")).unwrap();
                tab.value("scrollTo(0, 0)").unwrap();
            }
            keep(&tab, &format!("{name}-{scheme}-{width}"));
            // Wide tables scroll in a box of their own.
            let wide = tab.value("document.documentElement.scrollWidth").unwrap();
            assert!(wide.as_u64().unwrap() <= u64::from(width), "{name} {width}: {wide}");
        }
        // What is pressed by a finger is large enough (WCAG 2.2 §2.5.8), links in text left out.
        let small = "[...document.querySelectorAll('button, input, select, nav a')].filter((it) => \
            { const box = it.getBoundingClientRect(); \
            return box.height > 0 && (box.height < 24 || box.width < 24); }) \
            .map((it) => it.outerHTML.slice(0, 80))";
        assert_eq!(tab.value(small).unwrap(), serde_json::json!([]), "{name}");
        tab.media("light", "print").unwrap();
        let shown = "[...document.querySelectorAll('form, header, button')] \
            .filter((it) => it.getClientRects().length > 0).length";
        assert_eq!(tab.value(shown).unwrap(), 0, "{name}: forms on paper");
        assert_eq!(tab.unnamed().unwrap(), Vec::<String>::new(), "{name}");
    }
    assert_eq!(tab.faults(&ui.host), Vec::<String>::new());
}

#[test]
fn a_link_is_set_by_keys_alone() {
    let Some(browser) = browser() else { return };
    let Some(lab) = Lab::up("keys", "los") else { return };
    let ui = Ui::start();
    let tab = browser.tab(1280, 900).unwrap();
    tab.open(&ui.url).unwrap();
    tab.open(&format!("http://{}/links/{}", ui.host, lab.0)).unwrap();
    let focused = "document.activeElement.id";
    tab.key("Tab").unwrap();
    tab.until("document.activeElement.className === 'skip'").unwrap();
    for _ in 0..60 {
        if tab.value(focused).unwrap() == "f-ab-delay" {
            break;
        }
        tab.key("Tab").unwrap();
    }
    assert_eq!(tab.value(focused).unwrap(), "f-ab-delay");
    // Who comes by Tab has the text selected, and types in its place.
    for letter in ["3", "0", " ", "m", "s"] {
        tab.key(letter).unwrap();
    }
    tab.key("Enter").unwrap();
    tab.until("document.querySelector('#said').textContent === \"'delay' set to '30 ms'\"")
        .unwrap();
    assert_eq!(tab.value(focused).unwrap(), "f-ab-delay", "the focus stays");
}
