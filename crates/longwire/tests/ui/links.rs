//! The pages of labs, in a browser.

use super::serving::{Lab, Ui, browser, longwire, name};

#[test]
fn a_lab_is_started_shaped_measured_and_ended_by_clicks() {
    let Some(browser) = browser() else { return };
    // Says whether labs are permitted here at all.
    let Some(_probe) = Lab::up("probe", "los") else { return };
    let ui = Ui::start();
    let lab = Lab(name("clicks"));
    let tab = browser.tab(1280, 900).unwrap();
    tab.open(&ui.url).unwrap();
    assert!(!tab.value("location.search").unwrap().as_str().unwrap().contains("token"));
    tab.fill("#new-lab [name=name]", &lab.0).unwrap();
    tab.choose("#new-lab [name=link]", "satcom").unwrap();
    tab.click("#new-lab button").unwrap();
    tab.until(&format!("document.querySelector('#said').textContent === 'lab {} is up'", lab.0))
        .unwrap();
    tab.click(&format!("#labs a[href='/links/{}']", lab.0)).unwrap();
    tab.until("document.querySelector('#f-ab-delay')?.value === '550 ms'").unwrap();

    // Both directions alike: one field says it for both.
    tab.fill("#f-ab-delay", "50 ms").unwrap();
    tab.key("Enter").unwrap();
    tab.until("document.querySelector('#said').textContent === \"'delay' set to '50 ms'\"")
        .unwrap();
    let round_trip_s = lab.round_trip_s();
    assert!((0.1..0.16).contains(&round_trip_s), "{round_trip_s}");
    assert_eq!(tab.text("#delay-ba").unwrap(), "50 ms");

    // One direction.
    tab.click("#alike").unwrap();
    tab.fill("#f-ba-delay", "151 ms").unwrap();
    tab.click("#settings button").unwrap();
    tab.until("document.querySelector('#said').textContent === \"'ba.delay' set to '151 ms'\"")
        .unwrap();
    let round_trip_s = lab.round_trip_s();
    assert!((0.2..0.26).contains(&round_trip_s), "{round_trip_s}");
    tab.click("#ping").unwrap();
    let pinged = "document.querySelector('#pinged').textContent";
    tab.until(&format!("/5 of 5 came back: round trip 2[01][0-9]/.test({pinged})")).unwrap();
    // What it did is in the chart and in the numbers.
    tab.until("document.querySelector('#n-ab-delay_ms').textContent.startsWith('50')").unwrap();
    tab.until("document.querySelectorAll('#log li').length === 2").unwrap();

    tab.click("#transfer").unwrap();
    tab.until("/^3 files: .* 0 failed$/.test(document.querySelector('#fetched').textContent)")
        .unwrap();
    assert_eq!(tab.unnamed().unwrap(), Vec::<String>::new());

    tab.click("nav a[href='/']").unwrap();
    let end = format!("button[data-down='{}']", lab.0);
    tab.until(&format!("document.querySelector(\"{end}\") !== null")).unwrap();
    tab.click(&end).unwrap();
    tab.until(&format!("document.querySelector('#said').textContent === 'lab {} is down'", lab.0))
        .unwrap();
    assert_eq!(tab.unnamed().unwrap(), Vec::<String>::new());
    assert_eq!(tab.faults(&ui.host), Vec::<String>::new());
}

#[test]
fn what_cannot_be_is_refused_and_the_old_value_stands() {
    let Some(browser) = browser() else { return };
    let Some(lab) = Lab::up("refuse", "los") else { return };
    let ui = Ui::start();
    let tab = browser.tab(1280, 900).unwrap();
    tab.open(&ui.url).unwrap();
    tab.open(&format!("http://{}/links/{}", ui.host, lab.0)).unwrap();
    for (key, value, line) in [
        (
            "delay",
            "many",
            "delay = 'many' is refused: give a duration from 0 ns to 1 h (like 550 ms)",
        ),
        ("delay", "2 h", "delay = '2 h' is refused"),
        ("rate", "5 ms", "rate = '5 ms' is refused: give a rate from 10 bit/s to 100 Gbit/s"),
        ("loss", "101 %", "loss = '101 %' is refused"),
        ("jitter", "1 s", "jitter = 1 s exceeds delay = 5 ms"),
        ("trace", "/etc/passwd", "files are named on the command line only"),
        ("distribution", "<img src=x onerror=alert(1)>", "is refused: give uniform, normal"),
    ] {
        let field = format!("#f-ab-{key}");
        let before = tab.value(&format!("document.querySelector('{field}').value")).unwrap();
        tab.fill(&field, value).unwrap();
        tab.key("Enter").unwrap();
        let line = serde_json::Value::from(line);
        tab.until(&format!("document.querySelector('#refused').textContent.includes({line})"))
            .unwrap();
        tab.until(&format!("document.querySelector('{field}').value === {before}")).unwrap();
        assert_eq!(tab.text("#said").unwrap(), "");
    }
    tab.click("#settings button").unwrap();
    tab.until("document.querySelector('#said').textContent === 'nothing was changed'").unwrap();
    assert_eq!(tab.faults(&ui.host), Vec::<String>::new());

    // A lab that dies while it is looked at.
    longwire().args(["lab", "down", &lab.0]).output().unwrap();
    tab.until("document.querySelector('#refused').textContent.startsWith('no lab ')").unwrap();
}

#[test]
fn links_are_saved_and_loaded_by_name_and_presets_stay() {
    let Some(browser) = browser() else { return };
    let Some(lab) = Lab::up("sets", "los") else { return };
    let ui = Ui::start();
    let tab = browser.tab(1280, 900).unwrap();
    tab.open(&ui.url).unwrap();
    tab.open(&format!("http://{}/links/{}", ui.host, lab.0)).unwrap();
    let said = |line: &str| format!("document.querySelector('#said').textContent === \"{line}\"");
    let refused =
        |line: &str| format!("document.querySelector('#refused').textContent.includes(\"{line}\")");
    tab.fill("#f-ab-loss", "3 %").unwrap();
    tab.key("Enter").unwrap();
    tab.until(&said("'loss' set to '3 %'")).unwrap();
    tab.fill("#save [name=name]", "ridge").unwrap();
    tab.click("#save button").unwrap();
    tab.until(&said("saved as 'ridge'")).unwrap();
    tab.click("#save button").unwrap();
    tab.until(&refused("'ridge' is saved already: tick 'replace'")).unwrap();
    tab.fill("#save [name=name]", "satcom").unwrap();
    tab.click("#save [name=replace]").unwrap();
    tab.click("#save button").unwrap();
    tab.until(&refused("presets stay as they are")).unwrap();

    tab.choose("#load select", "cnr").unwrap();
    tab.click("#load button").unwrap();
    tab.until("document.querySelector('#f-ab-rate').value === '9.6 kbit/s'").unwrap();
    tab.choose("#load select", "ridge").unwrap();
    tab.click("#load button").unwrap();
    tab.until("document.querySelector('#f-ab-loss').value === '3 %'").unwrap();
    tab.until("document.querySelector('#f-ba-rate').value === '2 Mbit/s'").unwrap();
    tab.click("#forget").unwrap();
    tab.until(&said("forgot 'ridge'")).unwrap();
    // By another program meanwhile: the page follows.
    longwire().args(["lab", "set", &lab.0, "delay=77 ms"]).output().unwrap();
    ui.api("POST", &format!("/links/{}/settings", lab.0), r#"{"settings": {"loss": "4 %"}}"#);
    tab.until("document.querySelector('#f-ab-loss').value === '4 %'").unwrap();
    tab.until("document.querySelector('#f-ab-delay').value === '77 ms'").unwrap();
    assert_eq!(tab.faults(&ui.host), Vec::<String>::new());
}

#[test]
fn charts_are_seen_in_both_schemes_and_eight_tabs_load() {
    let Some(browser) = browser() else { return };
    let Some(lab) = Lab::up("charts", "los") else { return };
    let ui = Ui::start();
    let tab = browser.tab(1280, 900).unwrap();
    tab.open(&ui.url).unwrap();
    let page = format!("http://{}/links/{}", ui.host, lab.0);
    tab.open(&page).unwrap();
    tab.click("#ping").unwrap();
    tab.until("document.querySelector('#pinged').textContent.includes('came back')").unwrap();
    let colours = "(() => { const c = document.querySelector('#chart'); \
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; \
        const seen = new Map(); for (let i = 0; i < d.length; i += 4) { \
        const k = `${d[i] >> 4},${d[i + 1] >> 4},${d[i + 2] >> 4}`; \
        seen.set(k, (seen.get(k) ?? 0) + 1); } \
        return [...seen].filter(([, n]) => n > 8).length; })()";
    let ground = "(() => { const c = document.querySelector('#chart'); \
        const d = c.getContext('2d').getImageData(c.width - 2, c.height - 2, 1, 1).data; \
        return d[0] + d[1] + d[2]; })()";
    for (scheme, is_ground) in [("light", "> 600"), ("dark", "< 150")] {
        tab.media(scheme, "screen").unwrap();
        tab.until(&format!("{ground} {is_ground}")).unwrap();
        tab.until(&format!("{colours} >= 6")).unwrap();
    }
    let others: Vec<_> = (0..7).map(|_| browser.tab(800, 600).unwrap()).collect();
    for other in &others {
        other.open(&page).unwrap();
        other.until("document.querySelector('#f-ab-delay').value === '5 ms'").unwrap();
    }
    assert_eq!(tab.faults(&ui.host), Vec::<String>::new());
}
