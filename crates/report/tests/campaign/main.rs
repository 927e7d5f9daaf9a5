//! The report of a campaign: whole, well formed, true to the analysis, not misled by odd names.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

// Figures that are made up need no exact bytes.
#[allow(clippy::cast_possible_truncation)]
mod made_up;

use longwire_report::analysis::{Analysis, analyse};
use longwire_report::campaign::{facts, html, reasons, table};
use record::campaign::{Campaign, Setting, Way};
use services::xml::{Node, Reader};

/// A report of the full study is at most so long.
const MAX_REPORT_BYTES: usize = 4_000_000;

/// An element's name and attributes.
type Element = (String, Vec<(String, String)>);

/// The report as XML: its elements and its text.
fn parse(document: &str) -> (Vec<Element>, String) {
    let document = document.strip_prefix("<!DOCTYPE html>\n").unwrap();
    let mut reader = Reader::new(document);
    let (mut elements, mut texts) = (Vec::new(), String::new());
    while let Some(node) = reader.next_node().unwrap() {
        match node {
            Node::Start { name, attributes, .. } => {
                let attributes = attributes.into_iter().map(|one| (one.name, one.value));
                elements.push((name, attributes.collect()));
            }
            Node::Text(text) => texts += &text,
            Node::End | Node::Instruction => {}
        }
    }
    (elements, texts)
}

/// One network of the made-up study.
fn small() -> Campaign {
    let mut campaign = made_up::campaign(6);
    campaign.cells.retain(|cell| cell.network == "satcom");
    campaign
}

fn empty() -> Campaign {
    Campaign {
        setting: Setting::default(),
        networks: Vec::new(),
        cells: Vec::new(),
        references: Vec::new(),
        advice: Vec::new(),
        figures: Vec::new(),
    }
}

#[test]
fn the_report_is_one_well_formed_file_that_asks_for_nothing() {
    let campaign = small();
    let report = html(&campaign, &analyse(&campaign));
    let (elements, _) = parse(&report);
    let mut anchors = std::collections::BTreeSet::new();
    let mut targets = Vec::new();
    for (name, attributes) in &elements {
        assert!(!["script", "link", "img", "iframe", "object", "base"].contains(&name.as_str()));
        for (attribute, value) in attributes {
            let fetches = ["src", "action", "data", "poster", "background"];
            assert!(!fetches.contains(&attribute.as_str()), "{name} {attribute}={value}");
            match attribute.as_str() {
                "href" => targets.push(value.strip_prefix('#').expect("a link within").to_string()),
                "id" => assert!(anchors.insert(value.clone()), "{value} twice"),
                _ => {}
            }
        }
    }
    assert!(targets.len() > 100 && targets.iter().all(|target| anchors.contains(target)));
    let style = report.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    assert!(!style.contains("url(") && !style.contains("@import"), "{style}");
}

#[test]
fn the_full_study_stays_small() {
    let campaign = made_up::campaign(6);
    let report = html(&campaign, &analyse(&campaign));
    // To be looked at in a browser: no test sees whether a picture is clear.
    let place = concat!(env!("CARGO_TARGET_TMPDIR"), "/campaign.html");
    std::fs::write(place, &report).unwrap();
    println!("{} bytes in {place}", report.len());
    assert!(report.len() < MAX_REPORT_BYTES, "{} bytes", report.len());
}

#[test]
fn the_figures_shown_are_those_of_the_analysis() {
    let campaign = small();
    let mut analysis = analyse(&campaign);
    let index = analysis.comparisons[0].cell;
    analysis.cells[index].median_s = Some(7.77);
    analysis.cells[index].is_bound = true;
    analysis.comparisons[0].ratio = Some(0.4321);
    analysis.counts.flagged = 4321;
    analysis.recommendations[0].text = "Use what was planted".to_string();
    let (elements, text) = parse(&html(&campaign, &analysis));
    for expected in ["> 7.77", "0.43", "4321 flagged", "Use what was planted", "Use chunks"] {
        assert!(text.contains(expected), "{expected}");
    }
    let cut = elements.iter().flat_map(|(_, attributes)| attributes);
    assert!(cut.clone().any(|(name, value)| name == "class" && value.contains(" cut")), "an arrow");
    let terminal = table(&campaign, &analysis);
    assert!(terminal.contains("4321 flagged") && terminal.contains("Use what was planted"));
    assert!(terminal.lines().all(|line| line.chars().count() <= 100), "{terminal}");
}

#[test]
fn names_cannot_become_markup() {
    let hostile = "<script>alert('\"&\u{0}')</script>";
    let mut campaign = small();
    campaign.cells.truncate(12);
    campaign.setting.title = hostile.to_string();
    campaign.setting.machine.command = hostile.to_string();
    campaign.networks[0].name = hostile.to_string();
    campaign.advice[0].network = hostile.to_string();
    campaign.advice[0].text = hostile.to_string();
    campaign.figures.truncate(1);
    campaign.figures[0].network = hostile.to_string();
    campaign.figures[0].title = hostile.to_string();
    let groups = campaign.cells.iter().flat_map(|cell| cell.groups.clone()).collect();
    campaign.figures[0].groups = groups;
    for cell in &mut campaign.cells {
        cell.network = hostile.to_string();
        cell.service = hostile.to_string();
        cell.name += hostile;
        for setting in &mut cell.settings {
            setting.1 = hostile.to_string();
        }
        cell.runs[0].failure = Some(hostile.to_string());
        cell.runs[1].flagged = Some(hostile.to_string());
        cell.runs[2].congestion_control[0] = hostile.to_string();
        if let Some(measured) = cell.runs[2].measured.first_mut() {
            measured.exchange.error = Some(hostile.to_string());
        }
        if let Some(flight) = &mut cell.runs[0].flight {
            flight.exchange = hostile.to_string();
        }
    }
    let report = html(&campaign, &analyse(&campaign));
    let (elements, text) = parse(&report);
    assert!(!elements.iter().any(|(name, _)| name == "script"));
    assert!(text.contains("<script>alert"));
}

#[test]
fn without_runs_the_report_says_so() {
    let nothing = empty();
    let (_, text) = parse(&html(&nothing, &analyse(&nothing)));
    assert!(text.contains("Nothing was measured"), "{text}");
    assert!(table(&nothing, &Analysis::default()).contains("Nothing was measured"));
    let mut planned = small();
    for cell in &mut planned.cells {
        cell.runs.clear();
    }
    let (_, text) = parse(&html(&planned, &analyse(&planned)));
    assert!(text.contains("no result") && text.contains("no run"), "{text}");
    // An analysis of something else does not make it fall over.
    parse(&html(&planned, &Analysis::default()));
}

#[test]
fn the_same_facts_give_the_same_report() {
    let campaign = small();
    let analysis = analyse(&campaign);
    assert_eq!(html(&campaign, &analysis), html(&campaign, &analyse(&campaign)));
}

/// Leaves only runs that count.
fn without_trouble(campaign: &mut Campaign) {
    for cell in &mut campaign.cells {
        cell.runs.retain(|run| run.failure.is_none() && run.flagged.is_none());
    }
}

/// How many elements have a class of that name.
fn with_class(elements: &[Element], class: &str) -> usize {
    let attributes = elements.iter().flat_map(|(_, attributes)| attributes);
    let classes = attributes.filter(|(name, _)| name == "class");
    classes.filter(|(_, value)| value.split(' ').any(|one| one == class)).count()
}

#[test]
fn runs_too_few_for_an_interval_are_shown_as_they_are() {
    let shown = |runs| {
        let mut campaign = made_up::campaign(runs);
        campaign.cells.retain(|cell| cell.network == "los");
        without_trouble(&mut campaign);
        let (elements, _) = parse(&html(&campaign, &analyse(&campaign)));
        (with_class(&elements, "raw"), with_class(&elements, "whisker"))
    };
    let (raw, whiskers) = shown(3);
    assert!(raw > 50 && whiskers == 0, "{raw} {whiskers}");
    let (raw, whiskers) = shown(8);
    assert!(raw == 0 && whiskers > 50, "{raw} {whiskers}");
}

#[test]
fn what_failed_and_what_the_paper_says_have_marks_of_their_own() {
    let mut campaign = small();
    without_trouble(&mut campaign);
    let before = parse(&html(&campaign, &analyse(&campaign))).0;
    // Three figures show the default, and the network's page; the legends have one each.
    assert_eq!(with_class(&before, "failed"), 0);
    let soap = campaign.cells.iter().position(|cell| cell.name.ends_with("soap/direct/default"));
    let runs = &mut campaign.cells[soap.unwrap()].runs;
    runs[0].measured[0].exchange.error = Some("reset".to_string());
    runs[1].measured[0].exchange.error = Some("reset".to_string());
    runs[2].measured[0].exchange.censored = true;
    campaign.references.retain(|reference| !reference.cell.contains("soap"));
    let (after, text) = parse(&html(&campaign, &analyse(&campaign)));
    assert_eq!(with_class(&after, "failed"), 2 * 4, "a cross is two lines");
    assert!(text.contains("2 err 1 cut"), "the count beside it");
    let hollow = [&before, &after].map(|elements| with_class(elements, "hollow"));
    // SOAP's default is in four pictures, two of its settings in one.
    assert_eq!(hollow[0] - hollow[1], 4 + 2, "{hollow:?}");
}

#[test]
fn a_flight_says_where_the_seconds_went() {
    let campaign = small();
    let (elements, text) = parse(&html(&campaign, &analyse(&campaign)));
    let seconds = "Seconds: set-up 1.10, request on its way 0.551, wait for the first byte 0.601";
    assert!(text.contains(seconds) && text.contains("2 bursts of the answer"), "{text}");
    assert!(with_class(&elements, "host") <= 2 * 40, "flights are bounded");
    assert!(with_class(&elements, "packet") > 10);
}

/// A campaign of somebody's own: their server, a client that does not say how long answers are.
fn own() -> Campaign {
    let mut campaign = small();
    without_trouble(&mut campaign);
    campaign.cells.retain(|cell| {
        cell.server == "tracks" && cell.service == "soap" && cell.settings.is_empty()
    });
    campaign.cells.retain(|cell| cell.way == Way::Direct || cell.way == Way::Longwire);
    campaign.references.clear();
    campaign.advice.clear();
    campaign.figures.clear();
    for cell in &mut campaign.cells {
        cell.server = "portal".to_string();
        cell.name = format!("satcom/portal/soap/{}/default", cell.way.name());
        let through = cell.way == Way::Longwire;
        let measured = cell.runs.iter_mut().flat_map(|run| &mut run.measured);
        measured.filter(|_| through).for_each(|one| {
            one.exchange.body_bytes = 0;
            one.down.bytes /= 5;
        });
    }
    campaign
}

#[test]
fn an_own_server_direct_and_through_the_pair_are_compared() {
    let campaign = own();
    let analysis = analyse(&campaign);
    let terminal = table(&campaign, &analysis);
    let (_, page) = parse(&html(&campaign, &analysis));
    for text in [&terminal.replace("\n  ", " "), &page] {
        assert!(text.contains("Through longwire portal SOAP over satcom takes"), "{text}");
        assert!(text.contains("times as fast") && text.contains("of the bytes"), "{text}");
        for wrong in ["nothing is compared", "nothing is recommended", "server of 2014"] {
            assert!(!text.contains(wrong), "{wrong}: {text}");
        }
    }
    assert!(terminal.lines().all(|line| line.chars().count() <= 100), "{terminal}");
    let facts = facts(&campaign, &analysis);
    let gain = &facts["gains"][0];
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let factor = number(&gain["times_as_fast"]);
    // Made up to take a fifth of the time.
    assert!((4.0..6.5).contains(&factor), "{gain}");
    assert!(number(&gain["share_of_bytes"]) < 0.4, "{gain}");
    let medians = number(&gain["direct"]["median_s"]) / number(&gain["longwire"]["median_s"]);
    assert!((0.9..1.1).contains(&(factor / medians)), "{gain}");
    // 43 KB at 250 kbit/s and 550 ms each way, from what the direct client was sent.
    assert!((2.3..2.8).contains(&number(&gain["link_allows_s"])), "{gain}");
    assert_eq!(page.matches("portal longwire").count() + page.matches("portal default").count(), 4);
    assert!(page.contains("portal default1.00"), "of direct: {page}");
}

#[test]
fn counts_are_those_of_the_exchanges_and_reasons_are_counted() {
    let mut campaign = own();
    let exchanges: usize = runs(&campaign).map(|run| run.measured.len()).sum();
    for run in campaign.cells.iter_mut().flat_map(|cell| &mut cell.runs).skip(2) {
        run.failure = Some("no such program".to_string());
        run.measured.clear();
    }
    for run in campaign.cells.iter_mut().flat_map(|cell| &mut cell.runs).take(2) {
        run.measured.truncate(1);
        run.measured[0].exchange.error = Some("the client ended".to_string());
    }
    let analysis = analyse(&campaign);
    assert_eq!((analysis.counts.exchanges, analysis.counts.errors), (2, 2));
    assert_eq!((analysis.counts.good, analysis.counts.runs), (0, 12));
    let reasons = reasons(&campaign);
    assert_eq!(reasons[0], ("no such program".to_string(), 10));
    assert_eq!(reasons[1], ("the client ended".to_string(), 2));
    assert!(table(&campaign, &analysis).contains("with 2 exchanges"));
    assert!(exchanges > 100);
}

fn runs(campaign: &Campaign) -> impl Iterator<Item = &record::campaign::Run> {
    campaign.cells.iter().flat_map(|cell| &cell.runs)
}

#[test]
fn odd_figures_leave_every_coordinate_a_number() {
    let mut campaign = small();
    campaign.cells.truncate(30);
    let network = &mut campaign.networks[0];
    (network.rate_bps, network.delay_s, network.loss) = (Some(0), 0.0, 1.0);
    for (number, run) in campaign.cells.iter_mut().flat_map(|cell| &mut cell.runs).enumerate() {
        let times = [0.0, 1e-9, 1e9, 3.0];
        for measured in &mut run.measured {
            measured.exchange.elapsed_s = times[number % times.len()];
        }
        if let Some(flight) = &mut run.flight {
            flight.elapsed_s = times[1 + number % 3];
            flight.start_s += [0.0, 5.0, -5.0][number % 3];
            flight.packets.reverse();
        }
    }
    let (elements, _) = parse(&html(&campaign, &analyse(&campaign)));
    let places = ["x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "d", "points", "width", "height"];
    for (name, attributes) in &elements {
        for (attribute, value) in attributes {
            let is_place = places.contains(&attribute.as_str());
            let is_odd = value.contains("NaN") || value.contains("inf");
            assert!(!(is_place && is_odd), "{name} {attribute}={value}");
        }
    }
}
