use super::*;
use proptest::prelude::*;

const GPX: &str = r#"<?xml version="1.0"?>
<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1">
 <trk><name>Alpha &amp; one</name><trkseg>
  <trkpt lat="50.0" lon="7.0"><ele>100</ele><time>2026-11-28T07:00:10Z</time></trkpt>
  <trkpt lat="50.1" lon="7.0"><ele>200</ele><time>2026-11-28T07:00:20Z</time></trkpt>
 </trkseg></trk>
 <!-- another -->
 <trk><trkseg>
  <trkpt lat="51" lon="8"><time>2026-11-28T07:00:00Z</time></trkpt>
  <trkpt lat="51" lon="8.5"><time>2026-11-28T08:00:05+01:00</time></trkpt>
 </trkseg></trk>
</gpx>
"#;

const GEOJSON: &str = r#"{"type": "FeatureCollection", "features": [
 {"type": "Feature", "properties": {"name": "a\u0031", "coordTimes": [5, 7.5]},
  "geometry": {"type": "LineString", "coordinates": [[7, 50, 100], [7.5, 50]]}},
 {"type": "Feature", "properties": null,
  "geometry": {"type": "Point", "coordinates": [8, 51]}}
]}"#;

fn s(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn at(lat: f64, lon: f64, alt: f64) -> Position {
    Position::new(lat, lon, alt).unwrap()
}

#[test]
fn a_track_is_where_it_is() {
    let points = vec![(s(10.0), at(50.0, 7.0, 0.0)), (s(20.0), at(51.0, 8.0, 100.0))];
    let moving = Track::moving(points.clone()).unwrap();
    assert_eq!(moving.at(s(0.0)), at(50.0, 7.0, 0.0));
    assert_eq!(moving.at(s(15.0)), at(50.5, 7.5, 50.0));
    assert_eq!(moving.at(s(20.0)), at(51.0, 8.0, 100.0));
    assert_eq!(moving.at(s(99.0)), at(51.0, 8.0, 100.0));
    let stepped = Track::stepped(points.clone()).unwrap();
    assert_eq!(stepped.at(s(19.9)), at(50.0, 7.0, 0.0));
    assert_eq!(stepped.at(s(20.0)), at(51.0, 8.0, 100.0));
    assert_eq!(Track::fixed(at(1.0, 2.0, 3.0)).at(s(5.0)), at(1.0, 2.0, 3.0));
    let back: Vec<_> = points.into_iter().rev().collect();
    let error = Track::moving(back).unwrap_err().to_string();
    assert!(error.contains("10 s comes after 20 s"), "{error}");
    assert!(Track::moving(Vec::new()).is_err());
}

#[test]
fn gpx_is_read_from_its_earliest_time() {
    let tracks = parse_gpx("t.gpx", GPX, None).unwrap();
    assert_eq!(tracks.len(), 2);
    assert_eq!(tracks[0].name, "Alpha & one");
    let expected = [(s(10.0), at(50.0, 7.0, 100.0)), (s(20.0), at(50.1, 7.0, 200.0))];
    assert_eq!(tracks[0].track.points(), expected);
    assert_eq!(tracks[1].name, "");
    assert_eq!(tracks[1].track.points()[1], (s(5.0), at(51.0, 8.5, 0.0)));
}

#[test]
fn tracks_without_times_go_at_a_speed() {
    let route = r#"<gpx><rte><rtept lat="50" lon="7"/><rtept lat="50" lon="7"/>
        <rtept lat="50.01" lon="7"/></rte></gpx>"#;
    let error = parse_gpx("r.gpx", route, None).unwrap_err().to_string();
    assert!(error.contains("GPX r.gpx line 1") && error.contains("without times"), "{error}");
    assert!(parse_gpx("r.gpx", route, Some(0.0)).unwrap_err().to_string().contains("0 m/s"));
    let track = &parse_gpx("r.gpx", route, Some(10.0)).unwrap()[0].track;
    let length_m = at(50.0, 7.0, 0.0).distance_m(&at(50.01, 7.0, 0.0));
    assert_eq!(track.points().len(), 2);
    assert!((track.points()[1].0.as_secs_f64() - length_m / 10.0).abs() < 1e-6);
}

#[test]
fn geojson_is_read() {
    let tracks = parse_geojson("t.json", GEOJSON, None).unwrap();
    assert_eq!(tracks[0].name, "a1");
    let expected = [(s(0.0), at(50.0, 7.0, 100.0)), (s(2.5), at(50.0, 7.5, 0.0))];
    assert_eq!(tracks[0].track.points(), expected);
    assert_eq!(tracks[1].track.at(s(9.0)), at(51.0, 8.0, 0.0));
}

#[test]
fn a_bad_gpx_is_refused_by_line_and_element() {
    for (from, to, expected) in [
        ("lat=\"50.1\"", "lat=\"95\"", "line 5 field 'trkpt': latitude 95"),
        ("lat=\"50.1\"", "", "line 5 field 'trkpt': has no lat"),
        ("lat=\"50.1\"", "lat=50.1", "line 5: has an attribute without quotes"),
        ("07:00:20Z", "07:00:05Z", "line 5 field 'time': 2026-11-28T07:00:05Z is not after"),
        ("07:00:20Z", "7 o'clock", "line 5 field 'time': '2026-11-28T7 o\\'clock' is no time"),
        ("<ele>200", "<ele>high", "line 5 field 'ele': 'high' is no height"),
        ("<time>2026-11-28T07:00:20Z</time>", "", "line 3 field 'Alpha & one': point 2 has no"),
        ("</trkseg></trk>\n <!--", "</trk>\n <!--", "line 6: </trk> ends <trkseg>"),
        ("</gpx>\n", "", "ends within <gpx>: the file is cut"),
        ("<gpx", "<kml", "line 2 field 'kml'"),
        ("&amp;", "&x;", "line 3: has a reference &x;"),
        ("<?xml version=\"1.0\"?>", "<!DOCTYPE gpx>", "document type"),
    ] {
        let error = parse_gpx("b.gpx", &GPX.replacen(from, to, 1), None).unwrap_err().to_string();
        assert!(error.contains("GPX b.gpx") && error.contains(expected), "{error}");
    }
    assert!(parse_gpx("e", "<gpx/>", None).unwrap_err().to_string().contains("has no track"));
}

#[test]
fn a_bad_geojson_is_refused_by_line_and_member() {
    for (from, to, expected) in [
        ("[7.5, 50]", "[7.5]", "line 3 field 'geometry.coordinates': has a position"),
        ("[7.5, 50]", "[7.5, 500]", "line 3 field 'geometry.coordinates': latitude 500"),
        ("[5, 7.5]", "[5]", "line 2 field 'properties.coordTimes': 1 times for 2"),
        ("[5, 7.5]", "[5, -1]", "line 2 field 'properties.coordTimes': has what is no time"),
        ("[5, 7.5]", "[5, 5]", "line 2 field 'a1': 0 s comes after 0 s"),
        ("LineString", "Polygon", "line 3 field 'geometry.type'"),
        ("\"FeatureCollection\"", "3", "line 1 field 'type'"),
        ("]}", "]", "the file is cut"),
        ("\"geometry\"", "geometry", "line 3: has an object with a member"),
        ("7.5]", "1e999]", "line 2: '1e999' is no number"),
    ] {
        let text = match from {
            "]}" => GEOJSON.trim_end_matches("]}").to_owned(),
            _ => GEOJSON.replacen(from, to, 1),
        };
        let error = parse_geojson("b.json", &text, None).unwrap_err().to_string();
        let is_cut = from == "]}" && error.contains("line 6");
        assert!(is_cut || error.contains(expected), "{error}");
        assert!(error.contains("GeoJSON b.json"), "{error}");
    }
    let deep = "[".repeat(100_000);
    assert!(parse_geojson("d", &deep, None).unwrap_err().to_string().contains("within each other"));
}

proptest! {
    /// Any text, and any edit of a good one, gives tracks or one line of complaint.
    #[test]
    fn hostile_texts_do_no_harm(text in ".{0,200}", at in 0..700_usize, cut in 0..40_usize) {
        for good in [GPX, GEOJSON] {
            let start = (0..=at.min(good.len())).rev().find(|at| good.is_char_boundary(*at));
            let start = start.unwrap_or(0);
            let end = (start + cut).min(good.len());
            let edited = format!("{}{text}{}", &good[..start], &good[end..]);
            for text in [&text, &edited] {
                for read in [parse_gpx("x", text, Some(5.0)), parse_geojson("x", text, Some(5.0))] {
                    if let Err(error) = read {
                        prop_assert_eq!(error.to_string().lines().count(), 1);
                    }
                }
            }
        }
    }
}
