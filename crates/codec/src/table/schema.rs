//! A schema, and the grammars that were made of it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::exi::{Grammars, Options, Profile, Schema, SchemaId};
use crate::{Error, Limits};

/// Most sets of options whose grammars are kept; the oldest go first.
const KEPT: usize = 8;

/// A schema for EXI. Grammars are made of it when options first ask for them, and kept.
#[derive(Debug)]
pub struct CompiledSchema {
    schema: Schema,
    kept: Mutex<Vec<(Options, Arc<Grammars>)>>,
}

impl CompiledSchema {
    /// A schema of which nothing was made yet.
    #[must_use]
    pub fn new(schema: Schema) -> Self {
        Self { schema, kept: Mutex::new(Vec::new()) }
    }

    /// The grammars for these options. Errors: limits, and what the schema lacks.
    pub fn grammars(&self, options: &Options, limits: &Limits) -> Result<Arc<Grammars>, Error> {
        // What does not shape grammars does not tell them apart.
        let options = Options {
            cookie: false,
            options_in_header: false,
            block_size: 1,
            value_max_length: None,
            value_partition_capacity: None,
            canonical: false,
            utc_time: false,
            self_contained_elements: Vec::new(),
            profile: Profile::default(),
            schema_id: SchemaId::Agreed,
            ..options.clone()
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, grammars)) = kept.iter().find(|(of, _)| *of == options) {
            return Ok(Arc::clone(grammars));
        }
        let grammars = Arc::new(self.schema.grammars(&options, limits)?);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((options, Arc::clone(&grammars)));
        Ok(grammars)
    }
}
