//! Schemas that a peer has given up, or that another one has sent.

use codec::Limits;
use codec::exi::schema::Document;
use codec::infoset::SchemaContext;
use proto::control::Keeping;

use super::*;
use crate::kept::schemas::Schemas;
use crate::peer::find_schema;

fn schema_context() -> Arc<SchemaContext> {
    let xsd = "<xs:schema xmlns:xs='http://www.w3.org/2001/XMLSchema'><xs:element name='tracks'>\
         <xs:complexType><xs:sequence><xs:element name='track' maxOccurs='unbounded'>\
         <xs:complexType><xs:sequence><xs:element name='label' type='xs:string'/></xs:sequence>\
         <xs:attribute name='id' type='xs:int'/></xs:complexType></xs:element></xs:sequence>\
         </xs:complexType></xs:element></xs:schema>";
    let document = Document { location: "t.xsd", bytes: xsd.as_bytes() };
    let schema_context =
        SchemaContext::of_schema(&[document], &mut |_, _| None, &Limits::default());
    Arc::new(schema_context.unwrap())
}

/// Settings of one service, whose messages may go with a schema.
fn with_infoset(at: usize, infoset: Arc<SchemaContext>, arms: &[Options]) -> Config {
    let mut config = config(at);
    config.encoding.allow_infoset();
    let encodings = (!arms.is_empty()).then(|| arms.to_vec());
    config.services = vec![Service { encodings, infoset: Some(infoset), ..Service::default() }];
    config
}

/// What an infoset without needless bytes is.
fn tracks() -> Vec<u8> {
    let track = |id: u32| {
        let noise = id.wrapping_mul(2_654_435_761) >> 8;
        format!("<track id=\"{id}\"><label>unit {noise}</label></track>")
    };
    let all: String = (0..30).map(track).collect();
    format!("<tracks>{all}</tracks>").into_bytes()
}

#[test]
fn a_schema_that_the_peer_gave_up_comes_again_but_not_for_ever() {
    let none = Arc::new(SchemaContext::without_schema());
    let configs = [(EDGE, schema_context()), (GATEWAY, none)]
        .map(|(at, infoset)| with_infoset(at, infoset, &[Options::EXI_SCHEMA]));
    let mut pair = Pair::with(configs, Some(0));
    let mut read = Vec::new();
    for _ in 0..8 {
        pair.ends[GATEWAY].coding.core.schemas = Schemas::default();
        pair.asks("a", &tracks(), &tracks());
        pair.rests(20);
        pair.asks("a", &tracks(), &tracks());
        read.push(pair.last() == ["exi-schema"; 2]);
    }
    assert_eq!(read, [true, true, true, true, false, false, false, false]);
}

#[test]
fn a_schema_of_one_peer_is_there_for_the_next() {
    let mine = schema_context();
    let config = with_infoset(GATEWAY, Arc::new(SchemaContext::without_schema()), &[]);
    let mut coding = Coding::new(config);
    let abilities = abilities(&coding);
    let up = Input::Up { path: PATH, peer: "p".to_owned(), kind: "stream", instance: 9, abilities };
    coding.handle_input(ms(0), up);
    let (name, parcel) = (mine.name().unwrap(), mine.parcel().unwrap());
    coding.core.schemas.hold(77, Arc::new(SchemaContext::of_parcel(name, parcel.to_vec())));
    let offer = Keeping::Schema { id: name, bytes: parcel.len() as u64 };
    let content = |keeping: &Keeping| match keeping.part() {
        proto::exchange::Part::Control(_, content) => content,
        other => panic!("{other:?}"),
    };
    let input = Input::Control { path: PATH, kind: Keeping::KIND, content: content(&offer) };
    let mut todo = VecDeque::from([input]);
    let (mut says, mut stores) = (Vec::new(), 0);
    while let Some(input) = todo.pop_front() {
        coding.handle_input(ms(1), input);
        while let Some(output) = coding.poll_output() {
            match output {
                Output::Job(job) => todo.push_back(run(&job, &mut Contexts::default())),
                Output::Control { content, .. } => says.push(content),
                Output::Store { .. } => stores += 1,
                _ => {}
            }
        }
    }
    assert!(says.contains(&content(&Keeping::Held { id: name })), "{says:?}");
    // What the first one sends after that does not take it from the other.
    assert_eq!(stores, 1);
    for number in 0..9 {
        let other = SchemaContext::of_parcel([number; 8], Vec::new());
        coding.core.schemas.hold(77, Arc::new(other));
    }
    assert!(find_schema(&coding.core, name).is_some());
}
