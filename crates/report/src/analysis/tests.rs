//! Made-up campaigns whose truth is known.

use proptest::prelude::*;
use record::campaign::{Advice, Campaign, Cell, Measured, Network, Run, Setting, Share, Way};
use record::result::Exchange;

use super::chance::Chance;
use super::pairs::Pairs;
use super::*;

const SERVICES: [&str; 3] = ["soap", "rest-xml", "rest-json"];
const EXCHANGES: usize = 4;

fn exchange(elapsed_s: f64) -> Measured {
    let exchange = Exchange {
        name: "track".to_string(),
        start_s: 0.0,
        elapsed_s,
        body_bytes: 1000,
        status: Some(200),
        error: None,
        censored: false,
        connections: 1,
    };
    let share = Share { packets: 10, bytes: 4000, retransmitted: 1 };
    Measured { exchange, up: Share::default(), down: share, flights: 3 }
}

fn run(repetition: u32, mean_s: f64) -> Run {
    Run {
        repetition,
        attempt: 1,
        seed: u64::from(repetition),
        measured: vec![exchange(mean_s); EXCHANGES],
        ..Run::default()
    }
}

fn cut_off(repetition: u32, mean_s: f64) -> Run {
    let mut run = run(repetition, mean_s);
    run.measured[0].exchange.censored = true;
    run
}

fn failing(repetition: u32) -> Run {
    let mut run = run(repetition, 1.0);
    for measured in &mut run.measured {
        measured.exchange.error = Some("no answer".to_string());
    }
    run
}

fn cell(service: &str, settings: &[(&str, &str)], runs: Vec<Run>) -> Cell {
    let owned = |(name, value): &(&str, &str)| ((*name).to_string(), (*value).to_string());
    let settings: Vec<(String, String)> = settings.iter().map(owned).collect();
    let mut cell = Cell {
        name: String::new(),
        network: "net".to_string(),
        server: "tracks".to_string(),
        service: service.to_string(),
        way: Way::Direct,
        settings,
        groups: Vec::new(),
        runs,
    };
    cell.name = format!("net/tracks/{service}/direct/{}", cell.variant());
    cell
}

fn campaign(cells: Vec<Cell>) -> Campaign {
    let network = Network {
        name: "net".to_string(),
        source: String::new(),
        settings: Vec::new(),
        rate_bps: None,
        delay_s: 0.1,
        loss: 0.0,
        changes: Vec::new(),
    };
    let advice = Advice { network: "net".to_string(), text: "Use HTTP chunking".to_string() };
    Campaign {
        setting: Setting::default(),
        networks: vec![network],
        cells,
        references: Vec::new(),
        advice: vec![advice],
        figures: Vec::new(),
    }
}

/// Cells of all services: each setting with its factor of time, and luck of some per cent that a
/// seed shares between cells and some that it does not.
fn planted(name: &str, runs: u32, noise: f64, settings: &[(&[(&str, &str)], f64)]) -> Campaign {
    let mut chance = Chance::new(name, "planted");
    let mut luck = move || (chance.below(20_001) as f64 / 10_000.0 - 1.0) * noise;
    let mut cells = Vec::new();
    for service in SERVICES {
        let shared: Vec<f64> = (0..runs).map(|_| 5.0 * luck()).collect();
        for (settings, factor) in std::iter::once(&(&[][..], 1.0)).chain(settings) {
            let times = shared.iter().zip(1..).map(|(shared, repetition)| {
                run(repetition, 2.0 * factor * (shared + luck()).exp())
            });
            cells.push(cell(service, settings, times.collect()));
        }
    }
    campaign(cells)
}

fn rulings(campaign: &Campaign) -> Vec<Ruling> {
    let advice = analyse(campaign).recommendations;
    advice.iter().flat_map(|one| &one.verdicts).map(|verdict| verdict.verdict).collect()
}

#[test]
fn six_pairs_of_one_sign() {
    let times = |factor: f64| (1..=6).map(|k| run(k, factor * f64::from(k))).collect();
    let cells = vec![cell("soap", &[], times(1.0)), cell("soap", &[("a", "1")], times(0.5))];
    let analysis = analyse(&campaign(cells));
    let [comparison] = &analysis.comparisons[..] else { panic!("{analysis:?}") };
    assert_eq!((comparison.cell, comparison.default, comparison.pairs), (1, 0, 6));
    assert_eq!((comparison.p, comparison.p_adjusted), (Some(2.0 / 64.0), Some(2.0 / 64.0)));
    assert_eq!(comparison.effect, Some(-1.0));
    assert!((comparison.ratio.unwrap() - 0.5).abs() < 1e-12);
    let (low, high) = comparison.interval.unwrap();
    assert!((low - 0.5).abs() < 1e-12 && (high - 0.5).abs() < 1e-12);
    assert_eq!(analysis.cells[0].median_s, Some(3.5));
    assert_eq!(analysis.cells[0].connections, Some(1.0));
    assert_eq!(analysis.cells[0].retransmitted, Some(0.1));
    assert_eq!(analysis.counts.significant, 1);
}

#[test]
fn what_was_planted_is_found_and_said() {
    let settings: [(&[(&str, &str)], f64); 4] = [
        (&[("chunking", "on")], 0.7),
        (&[("nodelay", "off")], 1.3),
        (&[("read_timeout", "30s")], 1.0),
        (&[("chunking", "on"), ("compression", "on")], 0.6),
    ];
    let expected = [Ruling::Use, Ruling::Avoid, Ruling::Indifferent, Ruling::Use];
    for seed in 0..5 {
        let campaign = planted(&format!("planted {seed}"), 6, 0.01, &settings);
        assert_eq!(rulings(&campaign), expected, "{seed}");
    }
    let analysis = analyse(&planted("planted 0", 6, 0.01, &settings));
    let [advice] = &analysis.recommendations[..] else { panic!("{analysis:?}") };
    assert_eq!(advice.paper.as_deref(), Some("Use HTTP chunking"));
    let text =
        "Use chunking=on + compression=on (40 % less time). Avoid nodelay=off (30 % more time).";
    assert_eq!(advice.text, text);
    assert_eq!(advice.verdicts[3].part.as_ref().unwrap().setting, advice.verdicts[0].setting);
    assert_eq!(analyse(&planted("planted 0", 6, 0.01, &settings)), analysis);
}

#[test]
fn a_combination_has_to_beat_its_best_part() {
    let settings: [(&[(&str, &str)], f64); 3] = [
        (&[("chunking", "on")], 0.7),
        (&[("nodelay", "off")], 0.9),
        (&[("chunking", "on"), ("nodelay", "off")], 0.7),
    ];
    let campaign = planted("combination", 6, 0.01, &settings);
    assert_eq!(rulings(&campaign), [Ruling::Use, Ruling::Use, Ruling::NoBetter]);
    let text = &analyse(&campaign).recommendations[0].text;
    let expected = "Use chunking=on (30 % less time). Each alone also helps: nodelay=off (1";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn nothing_is_found_where_nothing_is() {
    const FAMILIES: u32 = 100;
    let values: Vec<String> = (0..8).map(|at| at.to_string()).collect();
    let settings: Vec<[(&str, &str); 1]> =
        values.iter().map(|at| [("null", at.as_str())]).collect();
    let settings: Vec<(&[(&str, &str)], f64)> =
        settings.iter().map(|one| (&one[..], 1.0)).collect();
    let mut wrong = 0_u32;
    for seed in 0..FAMILIES {
        let campaign = planted(&format!("null {seed}"), 5, 0.3, &settings);
        let claims = |ruling: &Ruling| matches!(ruling, Ruling::Use | Ruling::Avoid);
        wrong += u32::from(rulings(&campaign).iter().any(claims));
    }
    println!("{wrong} of {FAMILIES} families with a false claim");
    // One in twenty is allowed; 12 or more of 100 would then be seen once in 200 times.
    assert!(wrong < 12, "{wrong} of {FAMILIES}");
}

#[test]
fn p_is_below_its_level_as_often_as_that_says() {
    const TESTS: u32 = 2000;
    let mut chance = Chance::new("nominal", "");
    let mut below = 0_u32;
    for _ in 0..TESTS {
        let terms: Vec<f64> = (0..8).map(|_| chance.below(2001) as f64 / 1000.0 - 1.0).collect();
        below += u32::from(permutation::two_sided(&terms, &mut chance).unwrap() <= 0.05);
    }
    let share = f64::from(below) / f64::from(TESTS);
    // 12 of 256 patterns at most: 4.7 %, with a standard error of 0.5 %.
    assert!((0.032..=0.062).contains(&share), "{share}");
}

#[test]
fn a_bound_counts_only_in_the_direction_that_it_proves() {
    let pair = |first: Run, second: Run| {
        let pairs = Pairs::of(&cell("s", &[], vec![first]), &cell("s", &[], vec![second]));
        assert_eq!(pairs.bounds, 1);
        pairs.logs[0].exp()
    };
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found}");
    near(pair(run(1, 1.0), cut_off(1, 2.0)), 2.0);
    near(pair(run(1, 2.0), cut_off(1, 1.0)), 1.0);
    near(pair(cut_off(1, 2.0), run(1, 1.0)), 0.5);
    near(pair(cut_off(1, 1.0), run(1, 2.0)), 1.0);
    near(pair(cut_off(1, 1.0), cut_off(1, 2.0)), 1.0);
}

#[test]
fn a_median_is_a_bound_only_if_it_could_move() {
    let times = [1.0, 2.0, 3.0, 4.0, 5.0];
    let with_cut_off = |which: usize| {
        let runs = times
            .iter()
            .zip(1..)
            .map(|(time, k)| if k as usize == which { cut_off(k, *time) } else { run(k, *time) });
        cells::summary(&cell("s", &[], runs.collect()))
    };
    let (slowest, middle) = (with_cut_off(5), with_cut_off(3));
    assert_eq!((slowest.median_s, slowest.is_bound, slowest.bound_runs), (Some(3.0), false, 1));
    assert_eq!((middle.median_s, middle.is_bound, middle.censored), (Some(3.0), true, 1));
    assert_eq!(middle.interval_s, None);
}

#[test]
fn nothing_that_went_wrong_is_dropped_silently() {
    let mut flagged = run(2, 9.0);
    flagged.flagged = Some("late".to_string());
    let mut crashed = run(4, 1.0);
    (crashed.failure, crashed.measured) = (Some("no server".to_string()), Vec::new());
    let runs = vec![run(1, 2.0), flagged, failing(3), crashed, run(5, 2.0)];
    let default = cell("soap", &[], (1..=5).map(|k| run(k, 1.0)).collect());
    let other = cell("soap", &[("a", "1")], runs);
    let summary = cells::summary(&other);
    assert_eq!((summary.runs, summary.flagged, summary.failed), (2, 1, 2));
    let pairs = Pairs::of(&default, &other);
    assert_eq!((pairs.logs.len(), pairs.lost), (2, (0, 2)));
    assert_eq!((pairs.errors, pairs.exchanges), ((0, 8), (16, 16)));
    assert_eq!(pairs.unpaired, (1, 0));
}

#[test]
fn only_runs_of_the_same_seed_are_pairs() {
    let mut other = run(1, 2.0);
    other.seed = 77;
    let pairs = Pairs::of(&cell("s", &[], vec![run(1, 1.0)]), &cell("s", &[], vec![other]));
    assert_eq!((pairs.logs.len(), pairs.unpaired), (0, (1, 1)));
}

#[test]
fn a_setting_that_helps_one_service_only_says_so() {
    let times = |factor: f64| (1..=6).map(move |k| run(k, factor * (1.0 + f64::from(k) / 1e4)));
    let of = |factors: [f64; 3]| {
        let cells = SERVICES.iter().zip(factors).flat_map(|(service, factor)| {
            let chunked = cell(service, &[("chunking", "on")], times(factor).collect());
            [cell(service, &[], times(1.0).collect()), chunked]
        });
        analyse(&campaign(cells.collect())).recommendations.remove(0)
    };
    let advice = of([0.5, 1.0, 1.0]);
    let expected = "(21 % less time: soap 50 % less time, ";
    assert!(advice.text.contains(expected), "{}", advice.text);
    assert!(advice.verdicts[0].why.contains("It depends on the service"));
    let alike = of([0.5, 0.5, 0.5]);
    assert!(alike.text.contains("(50 % less time)"), "{}", alike.text);
    assert!(!alike.verdicts[0].why.contains("depends"));
}

#[test]
fn values_that_do_the_same_harm_are_named_together() {
    let times = |factor: f64| (1..=6).map(|k| run(k, factor)).collect::<Vec<Run>>();
    let all =
        [(&[][..], 1.0), (&[("a", "1")][..], 2.0), (&[("a", "2")], 2.0), (&[("a", "3")], 3.0)];
    let cells = SERVICES.iter().flat_map(|service| {
        all.iter().map(|(settings, factor)| cell(service, settings, times(*factor)))
    });
    let text = analyse(&campaign(cells.collect())).recommendations.remove(0).text;
    assert_eq!(text, "Avoid a=1, 2 (100 % more time), a=3 (200 % more time).");
}

#[test]
fn a_family_is_a_network_and_a_server() {
    let times = |factor: f64| (1..=6).map(|k| run(k, factor)).collect::<Vec<Run>>();
    let in_network = |network: &str, settings: &[(&str, &str)], factor: f64| Cell {
        network: network.to_string(),
        ..cell("soap", settings, times(factor))
    };
    let campaign = campaign(vec![
        in_network("net", &[], 1.0),
        in_network("net", &[("a", "1")], 2.0),
        in_network("net", &[("a", "2")], 2.0),
        in_network("other", &[], 1.0),
        in_network("other", &[("a", "1")], 2.0),
    ]);
    let analysis = analyse(&campaign);
    let adjusted: Vec<Option<f64>> =
        analysis.comparisons.iter().map(|one| one.p_adjusted).collect();
    assert_eq!(adjusted, [Some(4.0 / 64.0), Some(4.0 / 64.0), Some(2.0 / 64.0)]);
    let names: Vec<&str> = analysis.recommendations.iter().map(|one| &one.network[..]).collect();
    assert_eq!(names, ["net", "other"]);
}

#[test]
fn gzip_has_the_direct_default_only_if_it_has_none_of_its_own() {
    let times = |factor: f64| (1..=6).map(|k| run(k, factor)).collect::<Vec<Run>>();
    let by = |way, settings: &[(&str, &str)], factor| Cell {
        way,
        ..cell("soap", settings, times(factor))
    };
    let on = [("compression", "on")];
    let mut cells =
        vec![by(Way::Direct, &[], 2.0), by(Way::Gzip, &on, 1.0), by(Way::NewConnection, &on, 1.0)];
    let analysis = analyse(&campaign(cells.clone()));
    let found: Vec<_> = analysis.comparisons.iter().map(|one| (one.cell, one.default)).collect();
    assert_eq!((found, analysis.counts.cells_without_default), (vec![(1, 0)], 1));
    let text = &analysis.recommendations[0].text;
    assert_eq!(text, "Where clients offer gzip: Use compression=on (50 % less time).");
    cells.push(by(Way::Gzip, &[], 2.0));
    assert_eq!(analyse(&campaign(cells)).comparisons[0].default, 3);
}

#[test]
fn what_was_cut_off_is_not_called_the_same() {
    let mut campaign = planted("same", 6, 0.001, &[(&[("a", "1")], 1.0)]);
    assert_eq!(rulings(&campaign), [Ruling::Indifferent]);
    for cell in &mut campaign.cells {
        cell.runs[0].measured[0].exchange.censored = true;
    }
    assert_eq!(rulings(&campaign), [Ruling::Undecided]);
}

#[test]
fn what_fails_more_often_is_avoided_but_one_unlucky_run_is_not_enough() {
    let with_failures = |failures: u32| {
        let default = cell("soap", &[], (1..=6).map(|k| run(k, 1.0)).collect());
        let runs = (1..=6).map(|k| if k <= failures { failing(k) } else { run(k, 1.0) });
        campaign(vec![default, cell("soap", &[("a", "1")], runs.collect())])
    };
    assert_eq!(rulings(&with_failures(6)), [Ruling::Avoid]);
    assert_eq!(rulings(&with_failures(2)), [Ruling::Undecided]);
    let analysis = analyse(&with_failures(2));
    let verdict = &analysis.recommendations[0].verdicts[0];
    // Fisher's test alone would have said so.
    assert!(verdict.errors_p_adjusted.unwrap() < 0.05, "{verdict:?}");
    let text = &analyse(&with_failures(6)).recommendations[0].text;
    assert_eq!(text, "Avoid a=1 (fails more often).");
}

#[test]
fn a_setting_that_loses_runs_is_not_recommended_for_the_rest() {
    let mut campaign = planted("losing", 8, 0.01, &[(&[("a", "1")], 0.5)]);
    assert_eq!(rulings(&campaign), [Ruling::Use]);
    campaign.cells[1].runs[0].failure = Some("crashed".to_string());
    assert_eq!(rulings(&campaign), [Ruling::Undecided]);
    let why = &analyse(&campaign).recommendations[0].verdicts[0].why;
    assert!(why.ends_with("but 1 of its runs failed against 0."), "{why}");
}

#[test]
fn two_campaigns_of_the_same_truth_agree_and_others_do_not() {
    let settings: [(&[(&str, &str)], f64); 2] = [(&[("a", "1")], 1.0), (&[("a", "2")], 1.0)];
    let first = planted("first", 6, 0.05, &settings);
    let mut second = planted("second", 6, 0.05, &settings);
    let repeat = compare(&first, &second);
    assert_eq!(repeat.cells.len(), 9);
    assert!(repeat.share.unwrap() > 0.7, "{repeat:?}");
    second.cells[0].runs.truncate(5);
    second.cells[1].name = "another".to_string();
    for run in &mut second.cells[2].runs {
        run.measured.iter_mut().for_each(|measured| measured.exchange.elapsed_s *= 3.0);
    }
    let repeat = compare(&first, &second);
    assert_eq!((repeat.cells.len(), repeat.too_few.len(), repeat.only_one.len()), (7, 1, 2));
    assert!(!repeat.cells[0].holds && repeat.cells[0].interval_s.0 > 0.0, "{repeat:?}");
}

#[test]
fn times_however_far_apart_have_a_ratio() {
    let cells = vec![
        cell("soap", &[], vec![run(1, 1e-300), run(2, 1e300)]),
        cell("soap", &[("a", "1")], vec![run(1, 1e300), run(2, 1e-300)]),
    ];
    let analysis = analyse(&campaign(cells));
    assert_eq!(analysis.comparisons[0].ratio, Some(1.0));
}

/// Runs of every kind of misfortune.
fn odd_run() -> impl Strategy<Value = Run> {
    let time = prop_oneof![Just(0.0), Just(1e-300), Just(1e300), 0.001..100.0_f64];
    (0..4_u32, time, 0..6_u8, 0..3_usize).prop_map(|(repetition, time_s, kind, exchanges)| {
        let mut run = match kind {
            0 => failing(repetition),
            1 => cut_off(repetition, time_s),
            _ => run(repetition, time_s),
        };
        run.measured.truncate(exchanges);
        run.failure = (kind == 2).then(|| "crashed".to_string());
        run.flagged = (kind == 3).then(|| "late".to_string());
        run
    })
}

fn odd_cell() -> impl Strategy<Value = Cell> {
    let settings = prop::sample::select(vec![
        vec![],
        vec![("a", "1")],
        vec![("b", "1")],
        vec![("a", "1"), ("b", "1")],
        vec![("a", "1"), ("a", "1")],
    ]);
    (0..3_usize, settings, prop::collection::vec(odd_run(), 0..9)).prop_map(
        |(service, settings, runs)| {
            let mut cell = cell(SERVICES[service], &settings, runs);
            cell.network = if service == 2 { "unknown".to_string() } else { cell.network };
            cell
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn odd_campaigns_are_analysed_without_a_panic(
        cells in prop::collection::vec(odd_cell(), 0..12),
    ) {
        let campaign = campaign(cells);
        let analysis = analyse(&campaign);
        prop_assert_eq!(analysis.cells.len(), campaign.cells.len());
        for verdict in analysis.recommendations.iter().flat_map(|advice| &advice.verdicts) {
            prop_assert!(verdict.ratio.is_none_or(|ratio| !ratio.is_nan()));
            prop_assert!(verdict.p_adjusted.is_none_or(|p| (0.0..=1.0).contains(&p)));
            prop_assert!(!verdict.why.is_empty());
        }
        let counts = &analysis.counts;
        prop_assert_eq!(counts.runs, counts.good + counts.flagged + counts.failed);
        prop_assert!(compare(&campaign, &campaign).only_one.len() <= campaign.cells.len());
    }
}
