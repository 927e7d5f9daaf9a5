use super::*;
use services::xml::Reader;

/// Two platoons of which one leaves, over hills.
const SCENARIO: &str = "title = 'Two & two'\nduration = '100 s'\nstep = '5 s'\n\
    [ground]\nmade = 'hills'\ncorner = [50.1, 7.0]\nrows = 120\ncolumns = 160\nstep_deg = 0.001\n\
    [[medium]]\nname = 'wide'\nfrequency = '300 MHz'\npath_loss = 'log-distance'\n\
    exponent = 3.5\nshadowing_db = 0\n\
    [[medium]]\nname = 'narrow'\nkind = 'narrowband'\nfrequency = '60 MHz'\n\
    [[node]]\nname = 'a1'\nradios = ['wide', 'narrow']\nat = [50.05, 7.02]\n\
    [[node]]\nname = 'a2'\nradios = ['wide']\nat = [50.055, 7.03]\n\
    [[node]]\nname = 'b1'\nradios = ['wide', 'narrow']\n\
    way = [[0, 50.05, 7.04], [100, 50.02, 7.14]]\n\
    [groups]\nalpha = ['a1', 'a2']\n\
    [[message]]\nat = '1 s'\nfrom = 'a1'\nto = 'b1'\ntext = 'Move <now>.'\n";

fn resolved() -> Resolved {
    let no_file = |name: &str, _: usize| Err(format!("no {name}"));
    services::scenario::parse("test", SCENARIO, &no_file).unwrap().resolve().unwrap()
}

/// Whether a page is XML as a whole.
fn is_xml(page: &str) -> bool {
    let mut reader = Reader::new(page.strip_prefix("<!DOCTYPE html>\n").unwrap());
    loop {
        match reader.next_node() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

#[test]
fn a_picture_shows_nodes_links_ground_and_hops() {
    let resolved = resolved();
    let svg = picture(&resolved, Duration::ZERO, resolved.scenario.node_named("a1"));
    assert!(svg.starts_with("<svg xmlns=") && svg.contains("Two &amp; two at 0 s"));
    for name in ["a1", "a2", "b1"] {
        assert!(
            svg.contains(&format!("class=\"name\" text-anchor=\"start\">{name}</text>")),
            "{name}"
        );
    }
    let count = |what: &str| svg.matches(what).count();
    assert_eq!(count("<circle class=\"node g0\""), 1 + 1, "a2 and the key");
    assert_eq!(count("<circle class=\"node g0 root\""), 1);
    // a1 - a2 and a1 - b1, a2 - b1 on one channel, a1 - b1 on the other; and routes to a1.
    assert_eq!(count("class=\"link q0\""), 3 + 1);
    assert_eq!(count("class=\"link q0 narrow\""), 1 + 1);
    assert_eq!(count("class=\"route\""), 2 + 1);
    assert!(count("class=\"relief r") > 5 && count("class=\"contour\"") == 1);
    assert!(svg.contains("contours every 10 m"), "{svg}");
    assert!(svg.contains("Hops over time") && svg.contains("most hops"));
    assert!(svg.contains("3 nodes, 4 links; 100 % of pairs connected"), "{svg}");
    let late = picture(&resolved, Duration::from_secs(100), None);
    // On the wideband net b1 is out of range, on the narrowband one it is not.
    assert!(late.contains("3 nodes, 2 links; 100 % of pairs connected"), "{late}");
    assert_ne!(svg, late);
    assert_eq!(late, picture(&resolved, Duration::from_secs(100), None));
}

#[test]
fn a_page_is_xml_and_says_what_there_is() {
    let resolved = resolved();
    let times = [0, 50, 100].map(Duration::from_secs);
    let page = scenario_page(&resolved, &times, None);
    assert!(is_xml(&page), "{page}");
    assert_eq!(page.matches("<figure>").count(), 4);
    assert!(page.contains("<h1>Two &amp; two</h1>") && page.contains("Move &lt;now&gt;."));
    assert!(page.contains("CSMA") && page.contains("60 MHz") && page.contains("delta-bullington"));
    assert!(page.contains(&format!("{:016x}", resolved.fingerprint())));
}

#[test]
fn samples_of_hops_are_few_and_from_the_first_to_the_last() {
    let mut resolved = resolved();
    let samples = hop_samples(&resolved);
    assert_eq!(samples.len(), 21);
    assert_eq!(samples[20].at, Duration::from_secs(100));
    resolved.scenario.step = Duration::from_millis(100);
    let samples = hop_samples(&resolved);
    assert_eq!((samples.len(), samples[119].at), (120, Duration::from_secs(100)));
    assert!(samples.windows(2).all(|pair| pair[0].at < pair[1].at));
}
