//! What clients tell of themselves, kept under its hash: a client that has told its model once
//! sends the hash alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use coding::name_of_model;
use http::header::HeaderMap;
use proto::profile::{FIELD, Link, Model, Packet, Profile, decode_field};

/// Models kept; beyond it the one longest unused goes, and its client is asked for it again. With
/// the most encodings they take less than half a mebibyte.
const MAX_MODELS: usize = 1024;

/// What a request reported of its client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    /// How fast the client decodes.
    pub(crate) model: Option<Arc<Model>>,
    /// Its link as it sees it.
    pub(crate) link: Option<Link>,
    /// The client names a model that is not known here: it is to send it.
    pub(crate) wanted: bool,
    /// Why what it reported is not used.
    pub(crate) ignored: Option<String>,
}

struct Known {
    model: Arc<Model>,
    used: u64,
}

#[derive(Default)]
struct ProfilesState {
    known: BTreeMap<[u8; 8], Known>,
    clock: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Profiles {
    state: Mutex<ProfilesState>,
}

impl Profiles {
    /// Takes the field off a request: it is for this hop. None where there is no such field.
    pub(crate) fn take(&self, headers: &mut HeaderMap) -> Option<Reported> {
        let values: Vec<_> = headers.get_all(FIELD).iter().cloned().collect();
        headers.remove(FIELD);
        match values.as_slice() {
            [] => None,
            [value] => Some(self.read(decode_field(value.as_bytes()))),
            _ => Some(ignored("the field is there more than once".to_owned())),
        }
    }

    /// What a packet reports.
    pub(crate) fn read(&self, packet: Result<Packet, proto::Error>) -> Reported {
        match packet {
            Ok(Packet::Profile(profile)) => self.look_up(profile),
            Ok(Packet::Later { version }) => ignored(format!("version {version} is not known")),
            Err(error) => ignored(error.to_string()),
        }
    }

    fn look_up(&self, profile: Profile) -> Reported {
        let Profile { hash, model, link } = profile;
        if model.as_ref().is_some_and(|model| name_of_model(model) != hash) {
            return ignored("its hash is another model's".to_owned());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clock += 1;
        let used = state.clock;
        if let Some(known) = state.known.get_mut(&hash) {
            known.used = used;
            return Reported { model: Some(Arc::clone(&known.model)), link, ..Reported::default() };
        }
        let Some(model) = model.map(Arc::new) else {
            return Reported { link, wanted: true, ..Reported::default() };
        };
        if state.known.len() >= MAX_MODELS {
            let oldest = state.known.iter().min_by_key(|(_, known)| known.used);
            if let Some(oldest) = oldest.map(|(&hash, _)| hash) {
                state.known.remove(&oldest);
            }
        }
        state.known.insert(hash, Known { model: Arc::clone(&model), used });
        Reported { model: Some(model), link, ..Reported::default() }
    }
}

fn ignored(reason: String) -> Reported {
    Reported { ignored: Some(reason), ..Reported::default() }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proto::profile::{Decoding, encode_field};

    use super::*;

    fn model(fixed_s: f32) -> Model {
        Model { encodings: vec![Decoding { codec: 2, fixed_s, per_byte_s: 0.0 }] }
    }

    fn tell(profiles: &Profiles, profile: &Profile) -> Reported {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_str(&encode_field(profile)).unwrap();
        headers.insert(FIELD, value);
        let reported = profiles.take(&mut headers);
        assert!(headers.is_empty() && profiles.take(&mut headers).is_none());
        reported.unwrap()
    }

    #[test]
    fn a_model_reported_once_is_known_by_its_hash() {
        let profiles = Profiles::default();
        let hash = name_of_model(&model(0.5));
        let short = Profile { hash, model: None, link: None };
        let reported = tell(&profiles, &short);
        assert!(reported.wanted && reported.model.is_none());
        let whole = Profile { model: Some(model(0.5)), ..short.clone() };
        let reported = tell(&profiles, &whole);
        assert_eq!((reported.wanted, reported.model.as_deref()), (false, Some(&model(0.5))));
        assert_eq!(tell(&profiles, &short).model.as_deref(), Some(&model(0.5)));
    }

    #[test]
    fn nobody_puts_a_model_under_the_name_of_another() {
        let profiles = Profiles::default();
        let hash = name_of_model(&model(0.5));
        let forged = Profile { hash, model: Some(model(0.25)), link: None };
        let reported = tell(&profiles, &forged);
        assert!(reported.model.is_none() && reported.ignored.is_some());
        assert!(tell(&profiles, &Profile { model: None, ..forged }).wanted);
    }

    #[test]
    fn models_are_bounded_and_the_longest_unused_goes() {
        let profiles = Profiles::default();
        let first = Profile { hash: name_of_model(&model(0.5)), model: None, link: None };
        let many = |range: std::ops::Range<u32>| {
            for number in range {
                let model = Model {
                    encodings: vec![Decoding { codec: u64::from(number), ..Decoding::default() }],
                };
                tell(
                    &profiles,
                    &Profile { hash: name_of_model(&model), model: Some(model), link: None },
                );
            }
        };
        tell(&profiles, &Profile { model: Some(model(0.5)), ..first.clone() });
        many(0..1023);
        assert!(!tell(&profiles, &first).wanted, "used again");
        many(1023..1500);
        assert_eq!(profiles.state.lock().unwrap().known.len(), MAX_MODELS);
        assert!(!tell(&profiles, &first).wanted);
        many(1500..3000);
        assert!(tell(&profiles, &first).wanted);
    }
}
