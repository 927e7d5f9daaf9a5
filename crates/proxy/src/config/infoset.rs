//! Services of which the infoset is enough, and their schemas.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use codec::exi::Schema;
use codec::exi::schema::{Document, Resolve};
use codec::infoset::SchemaContext;
use codec::{Limits, Options};

use super::ServiceSettings;
use crate::strict;

/// The value of `fidelity`.
const INFOSET: &str = "infoset";
/// Most files of a service's schemas that are named; they may refer to more.
const MAX_SCHEMAS: usize = 64;
/// Largest file of a schema, in bytes.
const MAX_SCHEMA_BYTES: u64 = 16 << 20;

/// Whether a service's infoset is enough.
pub(super) fn is_allowed(settings: &ServiceSettings) -> bool {
    settings.fidelity.as_deref() == Some(INFOSET)
}

/// What a service's messages are made of; none where every byte has to come back. Errors: one line,
/// with what is allowed.
pub(super) fn schema_context(
    settings: &ServiceSettings,
) -> Result<Option<Arc<SchemaContext>>, String> {
    match settings.fidelity.as_deref() {
        None | Some("bytes") => match settings.schemas {
            None => return Ok(None),
            Some(_) => return Err("schemas need fidelity 'infoset': set it".to_owned()),
        },
        Some(INFOSET) => {}
        Some(other) => return Err(format!("fidelity '{other}': one of bytes, infoset")),
    }
    let Some(paths) = &settings.schemas else {
        return Ok(Some(Arc::new(SchemaContext::without_schema())));
    };
    if !(1..=MAX_SCHEMAS).contains(&paths.len()) {
        let count = paths.len();
        return Err(format!(
            "schemas: {count} schemas: name 1 to {MAX_SCHEMAS}, or leave them out"
        ));
    }
    let schema_context = read_documents(paths, |documents, resolve| {
        SchemaContext::of_schema(documents, resolve, &Limits::default())
    });
    schema_context.map(|one| Some(Arc::new(one))).map_err(|error| format!("schemas: {error}"))
}

/// What another service has that is made of the same: coders that are kept are then for both.
pub(super) fn shared(services: &[coding::Service], new: Arc<SchemaContext>) -> Arc<SchemaContext> {
    let mut others = services.iter().filter_map(|service| service.infoset.as_ref());
    others.find(|other| other.name() == new.name()).map_or(new, Arc::clone)
}

/// Whether a service's encodings go with what is set of its fidelity. A schema may be the peer's.
pub(super) fn check(
    encodings: Option<&[Options]>,
    schema_context: Option<&SchemaContext>,
) -> Result<(), String> {
    let wrong = encodings.into_iter().flatten().find(|options| options.is_infoset());
    match wrong.filter(|_| schema_context.is_none()) {
        Some(options) => {
            let label = options.label();
            Err(format!("encoding '{label}' needs fidelity 'infoset': set it"))
        }
        None => Ok(()),
    }
}

/// The schema of these files with all that it refers to; what is referred to and is no file is not
/// there.
///
/// # Errors
/// One line: a file that cannot be read or is longer than 16 MiB, or what is wrong in a schema.
pub fn read_schema(paths: &[impl AsRef<Path>], limits: &Limits) -> Result<Schema, String> {
    read_documents(paths, |documents, resolve| Schema::parse(documents, resolve, limits))
}

fn read_documents<T>(
    paths: &[impl AsRef<Path>],
    make: impl FnOnce(&[Document<'_>], &mut Resolve<'_>) -> Result<T, codec::Error>,
) -> Result<T, String> {
    let texts: Vec<_> = paths.iter().map(|path| read(path.as_ref())).collect::<Result<_, _>>()?;
    let locations: Vec<_> = paths.iter().map(|path| path.as_ref().to_string_lossy()).collect();
    let documents: Vec<_> = locations
        .iter()
        .zip(&texts)
        .map(|(location, bytes)| Document { location, bytes })
        .collect();
    let mut resolve = |location: &str, _: Option<&str>| read(Path::new(location)).ok();
    make(&documents, &mut resolve).map_err(|error| error.to_string())
}

/// Whether a schema's file can be read.
pub(super) fn check_schema(path: &Path) -> Result<(), String> {
    read(path).map(drop)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error| strict::unreadable(path, &error).to_string();
    let len = fs::metadata(path).map_err(unreadable)?.len();
    if len > MAX_SCHEMA_BYTES {
        let path = path.display();
        return Err(format!(
            "{path} is {len} bytes, over the limit of {MAX_SCHEMA_BYTES}: is it a schema?"
        ));
    }
    fs::read(path).map_err(unreadable)
}
