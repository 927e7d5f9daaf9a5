//! Runs and results, in a browser: started, stopped, gone on with after the interface has ended,
//! looked at.

use std::fs;

use super::serving::{Folder, Lab, Ui, browser, keep};

/// Short, and bears a busy machine.
const PLAN: &str = "
title = 'a small study'
about = 'chunking on two networks'
repetitions = 2
limits = { lateness = '50 ms', wait = 0.25 }
[client]
tracks = '1,2'
warm_up = 1
[[network]]
name = 'los'
[[network]]
name = 'wifi1'
[[group]]
name = 'g'
services = ['soap', 'rest-json']
[group.settings]
chunking = ['on']
";

fn folder(repetitions: u32) -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.0.join("scenarios")).unwrap();
    let plan = PLAN.replace("repetitions = 2", &format!("repetitions = {repetitions}"));
    fs::write(folder.0.join("scenarios/small.toml"), plan).unwrap();
    fs::write(folder.0.join("scenarios/other.toml"), "x = 1\n").unwrap();
    folder
}

/// The study's way by mouse and keys only: a plan started, a figure seen, a cell opened.
#[test]
fn a_campaign_is_run_and_read_by_clicks() {
    let Some(browser) = browser() else { return };
    let Some(_probe) = Lab::up("runs", "los") else { return };
    let ui = Ui::start_in(folder(2));
    let tab = browser.tab(1280, 900).unwrap();
    tab.open(&ui.url).unwrap();
    tab.click("nav a[href='/runs']").unwrap();
    tab.until("document.querySelector('#new-run option')?.value === 'small.toml'").unwrap();
    assert_eq!(tab.value("document.querySelectorAll('#new-run option').length").unwrap(), 1);
    // What is wrong is said before anything is started.
    tab.fill("#new-run [name=seed]", "many").unwrap();
    tab.click("#new-run button").unwrap();
    tab.until("document.querySelector('#refused').textContent.startsWith(\"'seed' is refused\")")
        .unwrap();
    tab.fill("#new-run [name=seed]", "7").unwrap();
    tab.fill("#new-run [name=name]", "first").unwrap();
    tab.click("#new-run [name=quick]").unwrap();
    tab.click("#new-run button").unwrap();
    tab.until("location.pathname === '/runs/first'").unwrap();
    let state = |is: &str| format!("document.querySelector('#state')?.textContent === '{is}'");
    for _ in 0..10 {
        if tab.until(&state("complete")).is_ok() {
            break;
        }
    }
    tab.until(&state("complete")).unwrap();
    assert!(tab.text("#standing").unwrap().starts_with("16 of 16 runs"));
    assert_eq!(tab.value("document.querySelectorAll('#latest tr').length").unwrap(), 12);
    assert_eq!(tab.unnamed().unwrap(), Vec::<String>::new());

    tab.click("main a[href='/results/first']").unwrap();
    tab.until("document.querySelectorAll('#cells tbody tr').length === 8").unwrap();
    let label = "document.querySelector('figure svg')?.getAttribute('aria-label')";
    tab.until(&format!("{label}.includes('chunking, los')")).unwrap();
    tab.choose("[name=network]", "wifi1").unwrap();
    tab.choose("[name=service]", "soap").unwrap();
    tab.click(".filters button").unwrap();
    tab.until("document.querySelectorAll('#cells tbody tr').length === 2").unwrap();
    tab.until("location.search.includes('network=wifi1')").unwrap();
    tab.click("#cells thead a").unwrap();
    tab.until("document.querySelector('#cells [aria-sort=ascending]') !== null").unwrap();
    keep(&tab, "campaign");
    tab.click("#cells tbody a").unwrap();
    tab.until("document.querySelectorAll('#exchanges tbody tr').length === 4").unwrap();
    tab.until("document.querySelector('.flight svg') !== null").unwrap();
    keep(&tab, "cell");
    assert_eq!(tab.unnamed().unwrap(), Vec::<String>::new());

    tab.click("nav a[href='/results']").unwrap();
    tab.until("document.querySelectorAll('#campaigns tbody tr').length === 1").unwrap();
    tab.click("form button").unwrap();
    tab.until("document.querySelector('#verdict') !== null").unwrap();
    assert_eq!(tab.faults(&ui.host), Vec::<String>::new());

    // The same for programs.
    let cells = ui.api("GET", "/results/first/cells?network=los&sort=-median", "");
    let cells: serde_json::Value = serde_json::from_str(&cells.body).unwrap();
    assert_eq!(cells.as_array().unwrap().len(), 4);
    let csv = ui.api("GET", "/results/first/export.csv?way=direct", "").body;
    assert_eq!(csv.lines().count(), 9);
    let svg = ui.api("GET", "/results/first/plot.svg?parameter=network", "").body;
    assert!(svg.starts_with("<svg") && svg.contains("wifi1") && svg.contains("<style>"));
    let bearer = format!("Bearer {}", ui.token);
    let fields = [("Host", ui.host.as_str()), ("Authorization", &bearer)];
    let report = ui.ask("GET /results/first/report.html", &fields, "");
    assert_eq!(report.status, 200);
    assert!(report.head.contains("content-security-policy: sandbox;"), "{}", report.head);
}

#[test]
fn a_run_outlives_the_interface_and_goes_on_after_a_stop() {
    let Some(_probe) = Lab::up("outlives", "los") else { return };
    let ui = Ui::start_in(folder(40));
    let answer =
        ui.api("POST", "/runs", r#"{"plan": "small.toml", "name": "long", "parallel": 2}"#);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let state = |ui: &Ui| -> (String, u64) {
        let facts = ui.api("GET", "/runs/long", "").body;
        let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
        let done = facts["progress"]["done"].as_u64().unwrap_or(0);
        (facts["state"].as_str().unwrap().to_string(), done)
    };
    let wait = |ui: &Ui, what: &str, is: &dyn Fn(&(String, u64)) -> bool| {
        let begun = std::time::Instant::now();
        loop {
            let now = state(ui);
            if is(&now) {
                return now;
            }
            assert!(begun.elapsed().as_secs() < 120, "{what}: {now:?}");
            // sleep: who asks all the time takes the processor from what is measured.
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    };
    wait(&ui, "begins", &|(state, done)| state == "running" && *done > 0);
    let twice = ui.api("POST", "/runs", r#"{"plan": "small.toml", "name": "long"}"#);
    assert_eq!(twice.status, 409, "{}", twice.body);
    let ui = Ui::start_in(ui.stop());
    let (_, before) = wait(&ui, "is found again", &|(state, _)| state == "running");
    wait(&ui, "goes on", &|(state, done)| state == "running" && *done > before);
    assert_eq!(ui.api("POST", "/runs/long/stop", "{}").status, 200);
    let (_, done) = wait(&ui, "stops", &|(state, _)| state == "stopped");
    assert_eq!(ui.api("POST", "/runs/long/stop", "{}").status, 409);
    assert_eq!(ui.api("POST", "/runs/long/resume", "{}").status, 200);
    wait(&ui, "resumes", &|(state, now)| state == "running" && *now >= done);
    assert_eq!(ui.api("POST", "/runs/long/stop", "{}").status, 200);
    wait(&ui, "stops again", &|(state, _)| state == "stopped");
}

#[test]
fn plans_and_results_are_named_within_their_folders() {
    let ui = Ui::start_in(folder(1));
    for (plan, line) in [
        ("../small.toml", "this is no name"),
        ("/etc/passwd", "this is no name"),
        ("none.toml", "none.toml"),
        ("other.toml", "other.toml"),
    ] {
        let answer = ui.api("POST", "/runs", &format!(r#"{{"plan": "{plan}"}}"#));
        assert!(answer.status == 422 || answer.status == 500, "{plan}: {}", answer.body);
        assert!(answer.body.contains(line), "{plan}: {}", answer.body);
    }
    for path in ["/results/..%2F..", "/results/none", "/runs/none", "/results/%2e%2e/cells"] {
        let answer = ui.api("GET", path, "");
        assert!([404, 422].contains(&answer.status), "{path}: {}", answer.status);
    }
    // A database that is none of ours is said where it is.
    let folder = ui.folder.0.join("results/odd");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("results.sqlite"), "no database").unwrap();
    let list = ui.api("GET", "/results", "");
    assert!(list.body.contains("odd") && list.body.contains("error"), "{}", list.body);
}
