use super::*;
use crate::publication::Form;

fn typed(payload: &[u8], content_type: Option<&str>) -> Arc<Publication> {
    let mut publication = Publication::new(Protocol::Mqtt, "unit/7", payload.to_vec());
    publication.id = 1;
    if let Some(content_type) = content_type {
        publication.details_mut().content_type = Some(content_type.to_owned());
    }
    Arc::new(publication)
}

fn rule(filter: &str, form: PayloadForm) -> FormRule {
    FormRule { filter: filter.to_owned(), protocol: None, user: None, client: None, form }
}

const ANN: For<'_> = For { protocol: Protocol::Mqtt, name: "a", user: Some("ann") };

fn to(publication: &Arc<Publication>, form: PayloadForm) -> Converted {
    FormCache::default().convert(&[rule("#", form)], ANN, publication).unwrap()
}

fn content_type(publication: &Publication) -> &str {
    publication.details.as_ref().unwrap().content_type.as_deref().unwrap()
}

#[test]
fn a_payload_leaves_in_another_form_with_its_media_type() {
    let json = typed(b"{\"lat\":59.9}", Some("application/json"));
    let cbor = to(&json, PayloadForm::Cbor).publication;
    assert_eq!(&cbor.payload[..], b"\xa1\x63lat\xc4\x82\x20\x19\x02\x57");
    assert_eq!((content_type(&cbor), cbor.form), ("application/cbor", Form::Bytes));
    assert_eq!(cbor.coded, Some(PayloadForm::Cbor));
    let back = to(&cbor, PayloadForm::Json).publication;
    assert_eq!((&back.payload, content_type(&back)), (&json.payload, "application/json"));
    assert_eq!(back.form, Form::Text);
    assert!(back.details.as_ref().unwrap().properties.is_empty());
    let xml = typed(b"<a x='1'>t</a>", Some("text/xml; charset=utf-8"));
    for (form, media_type) in [
        (PayloadForm::Exi, "application/exi"),
        (PayloadForm::Cbor, "application/x.longwire.xml+cbor"),
    ] {
        let coded = to(&xml, form).publication;
        assert_eq!(content_type(&coded), media_type);
        let back = to(&coded, PayloadForm::Xml).publication;
        assert_eq!(content_type(&back), "text/xml; charset=utf-8", "the type is kept");
        assert_eq!(&back.payload[..], b"<a x=\"1\">t</a>");
        assert!(back.details.as_ref().unwrap().properties.is_empty());
    }
}

#[test]
fn a_media_type_of_more_than_the_notation_comes_back_from_either_side() {
    for (first, payload, there, back) in [
        ("application/geo+json", &b"[1]"[..], PayloadForm::Cbor, PayloadForm::Json),
        ("application/senml+cbor", b"\x81\x01", PayloadForm::Json, PayloadForm::Cbor),
    ] {
        let coded = to(&typed(payload, Some(first)), there).publication;
        let details = coded.details.as_ref().unwrap();
        assert_eq!(details.properties, [("lw-media-type".to_owned(), first.to_owned())]);
        let back = to(&coded, back).publication;
        assert_eq!((content_type(&back), &back.payload[..]), (first, payload));
        assert!(back.details.as_ref().unwrap().properties.is_empty());
    }
}

#[test]
fn what_cannot_be_put_into_a_form_leaves_as_it_came_and_it_is_said_why() {
    let long = [&b"[\""[..], &vec![b'x'; 64 << 10], b"\"]"].concat();
    for (payload, content_type, form, said) in [
        (&b"x"[..], Some("image/png"), PayloadForm::Json, "image/png is none"),
        (b"17", None, PayloadForm::Cbor, "names no content type"),
        (b"{", None, PayloadForm::Cbor, "cbor: at byte"),
        (b"{}", None, PayloadForm::Exi, "json cannot be in exi"),
        (b"{}", None, PayloadForm::Json, "json already"),
        (&long, None, PayloadForm::Cbor, "over the 65536"),
        (b"\xf7", Some("application/cbor"), PayloadForm::Json, "simple value 23"),
        (b"<!DOCTYPE a><a/>", None, PayloadForm::Exi, "come back"),
        (
            b"<a>\xc3\xa9</a>",
            Some("text/xml; charset=iso-8859-1"),
            PayloadForm::Exi,
            "not in UTF-8",
        ),
        (
            b"<a>&#233;</a>",
            Some("text/xml;CHARSET=\"us-ascii\""),
            PayloadForm::Cbor,
            "not in UTF-8",
        ),
    ] {
        let publication = typed(payload, content_type);
        let converted = to(&publication, form);
        assert!(Arc::ptr_eq(&converted.publication, &publication));
        let why = converted.unchanged.unwrap();
        assert!(why.contains(said), "{why}");
    }
}

#[test]
fn the_first_rule_that_fits_topic_and_receiver_decides() {
    let rules = [
        FormRule { client: Some("b".to_owned()), ..rule("#", PayloadForm::Identity) },
        FormRule { user: Some("bob".to_owned()), ..rule("#", PayloadForm::Exi) },
        FormRule { protocol: Some(Protocol::Bridge), ..rule("unit/#", PayloadForm::Cbor) },
        rule("other", PayloadForm::Cbor),
    ];
    let json = typed(b"{}", None);
    let mut form_cache = FormCache::default();
    let mut form = |protocol, name, user| {
        let converted = form_cache.convert(&rules, For { protocol, name, user }, &json);
        converted.map(|it| it.publication.coded)
    };
    assert_eq!(form(Protocol::Bridge, "hq", None), Some(Some(PayloadForm::Cbor)));
    assert_eq!(form(Protocol::Bridge, "b", None), None);
    assert_eq!(form(Protocol::Mqtt, "hq", None), None);
    assert_eq!(form(Protocol::Bridge, "hq", Some("bob")), Some(None), "asked for, not possible");
    // A topic's end stays one.
    let empty = typed(b"", None);
    assert!(FormCache::default().convert(&[rule("#", PayloadForm::Cbor)], ANN, &empty).is_none());
}

#[test]
fn what_was_made_is_shared_and_memory_is_bounded() {
    let mut form_cache = FormCache::default();
    let rules = [rule("#", PayloadForm::Cbor)];
    let json = typed(b"{}", None);
    let first = form_cache.convert(&rules, ANN, &json).unwrap().publication;
    let second = form_cache.convert(&rules, ANN, &json).unwrap().publication;
    assert!(Arc::ptr_eq(&first, &second));
    let long = [&b"[\""[..], &vec![b'x'; 60_000], b"\"]"].concat();
    for id in 2..1000 {
        let mut one = Publication::clone(&typed(if id % 2 == 0 { &long } else { b"[]" }, None));
        one.id = id;
        form_cache.set_now(Duration::from_secs(id));
        form_cache.convert(&rules, ANN, &Arc::new(one)).unwrap();
        assert!(form_cache.made.len() <= MAX_MADE && form_cache.bytes <= MAX_MADE_BYTES);
    }
    let counted: usize = form_cache.made.iter().map(Made::bytes).sum();
    assert_eq!((form_cache.bytes, form_cache.made.len()), (counted, MAX_MADE));
    let third = form_cache.convert(&rules, ANN, &json).unwrap().publication;
    assert!(!Arc::ptr_eq(&first, &third), "it had gone");
}

#[test]
fn what_is_put_into_another_form_has_a_share_of_the_time() {
    let (mut form_cache, rules) = (FormCache::default(), [rule("#", PayloadForm::Cbor)]);
    let mut made_at = |now: Duration, from: u64| {
        form_cache.set_now(now);
        let mut made = 0;
        for id in from..from + 20_000 {
            let mut one = Publication::clone(&typed(b"{}", None));
            one.id = id;
            let converted = form_cache.convert(&rules, ANN, &Arc::new(one)).unwrap();
            let Some(why) = converted.unchanged else {
                made += 1;
                continue;
            };
            assert!(why.contains("too much"), "{why}");
            assert!(form_cache.made.iter().all(|made| made.id != id), "it may be made next time");
        }
        made
    };
    // 21 us each, twice that of the time, half a second ahead.
    let first = made_at(Duration::from_secs(1), 1);
    assert!((11_000..13_000).contains(&first), "{first}");
    let second = made_at(Duration::from_millis(1_100), 50_000);
    assert!((2_000..3_000).contains(&second), "{second}: a tenth of a second later");
}
