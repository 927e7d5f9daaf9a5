use super::*;

fn offer(id: &str, p99_us: u64) -> Offer {
    let facts = Facts {
        mean_us: 1,
        p99_us,
        p999_us: p99_us,
        p9999_us: p99_us,
        max_us: p99_us,
        samples: 20_000,
        window: Duration::from_secs(1),
        at: Duration::from_secs(1_773_468_000),
    };
    Offer {
        id: id.to_owned(),
        name: id.to_owned(),
        url: "http://x".to_owned(),
        facts: Some(facts).filter(|_| p99_us > 0),
        expires_in: None,
    }
}

#[test]
fn offers_are_read_as_they_are_written_and_sorted() {
    let mut offers = [offer("none", 0), offer("slow", 900), offer("fast", 10)];
    for one in &offers {
        assert_eq!(offer_of(&one.json()).as_ref(), Ok(one));
    }
    sort(&mut offers, Some(Wanted { max_us: 1000, grade: Determinism::Hard }));
    assert_eq!(offers.map(|one| one.id), ["fast", "slow", "none"]);
}

#[test]
fn a_service_without_what_it_needs_is_refused() {
    for name in ["id", "name", "url"] {
        let mut value = offer("a", 10).json();
        value.as_object_mut().unwrap().remove(name);
        assert!(offer_of(&value).unwrap_err().to_string().contains(name));
    }
    let mut value = offer("a", 10).json();
    value["quality"]["p99_us"] = 11.into();
    assert!(offer_of(&value).unwrap_err().to_string().contains("above"));
}

#[test]
fn ids_and_values_stay_within_their_places() {
    assert_eq!(encoded("a b&c=é"), "a%20b%26c%3D%C3%A9");
    assert!(checked("4cd7e4bc-648b-426d-9936-443eaac8ae23").is_ok());
    for id in ["", "a/b", "a?b", "a b", "é"] {
        assert!(checked(id).is_err(), "{id}");
    }
}
