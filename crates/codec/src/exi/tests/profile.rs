//! The EXI Profile: what a receiver has to learn stays within its bounds.

use std::sync::Arc;

use super::ALIGNMENTS;
use crate::Limits;
use crate::exi::{Grammars, Options, Profile, decode, encode};

/// Elements and attributes that no schema knows, again and again.
const XML: &str = "<r a='1'><u x='1' y='2'>t<v/><w z='3'>u</w></u><u x='2'><v>s</v></u>\
    <v k='1'/><w/>x<w z='4'><w>y</w>z</w></r>";

/// The stream without the types that were put in.
fn without_types(text: &[u8]) -> String {
    let text = String::from_utf8(text.to_vec()).unwrap();
    let any = [
        " xsi:type=\"ns3:anyType\"",
        " xmlns:ns3=\"http://www.w3.org/2001/XMLSchema\"",
        " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"",
    ];
    any.iter().fold(text, |text, any| text.replace(any, ""))
}

fn round_trip(profile: Profile, grammars: bool) {
    let limits = Limits::default();
    for alignment in ALIGNMENTS {
        let options = Options { alignment, profile, ..Options::default() };
        let built_in = || Arc::new(Grammars::built_in(&options, &limits).unwrap());
        let grammars = grammars.then(built_in);
        let stream = encode(XML.as_bytes(), &options, grammars.as_ref(), &limits).unwrap();
        let text = decode(&stream, &options, grammars.as_ref(), &limits).unwrap();
        assert_eq!(without_types(&text), XML.replace('\'', "\""), "{options:?}");
    }
}

#[test]
fn what_is_bounded_comes_back() {
    for grammars in [true, false] {
        for most in [None, Some(0), Some(1), Some(2), Some(3), Some(5), Some(8), Some(13)] {
            for productions in [None, Some(0), Some(1), Some(2), Some(4), Some(7), Some(100)] {
                round_trip(
                    Profile {
                        built_in_grammars_max: most,
                        built_in_productions_max: productions,
                        local_value_partitions: productions != Some(4),
                    },
                    grammars,
                );
            }
        }
    }
}

#[test]
fn beyond_the_bound_elements_have_a_type() {
    let limits = Limits::default();
    let count = |profile: Profile, xml: &str| {
        let options = Options { profile, ..Options::default() };
        let grammars = Arc::new(Grammars::built_in(&options, &limits).unwrap());
        let stream = encode(xml.as_bytes(), &options, Some(&grammars), &limits).unwrap();
        let text = decode(&stream, &options, Some(&grammars), &limits).unwrap();
        String::from_utf8(text).unwrap().matches(":anyType").count()
    };
    let grammars = |max| Profile { built_in_grammars_max: Some(max), ..Profile::default() };
    // The root has the first built-in grammar, u, v and w the next ones.
    assert_eq!(count(grammars(0), XML), 10);
    assert_eq!(count(grammars(4), XML), 0);
    assert_eq!(count(grammars(3), XML), 4);
    let productions = |max| Profile { built_in_productions_max: Some(max), ..Profile::default() };
    assert_eq!(count(productions(0), XML), 10);
    assert_eq!(count(productions(1000), XML), 0);
    // A type of its own is as good, if the schema has it.
    let typed = "<r xmlns:i='http://www.w3.org/2001/XMLSchema-instance' \
        xmlns:s='http://www.w3.org/2001/XMLSchema' i:type='s:int'>7</r>";
    assert_eq!(count(grammars(0), typed), 0);
}
