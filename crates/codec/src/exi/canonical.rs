//! Canonical EXI 1.0 (W3C Recommendation, 7 June 2018): the options that its streams have.

use super::{
    Alignment, Options,
    mapping::{EXI_URI, representation},
    schema::XSD,
};

impl Options {
    /// What these options come to in a stream: canonical ones if `canonical` is set (Canonical EXI
    /// 1.0 §3).
    pub(crate) fn effective(&self) -> Self {
        let mut options = self.clone();
        if !self.canonical {
            return options;
        }
        options.cookie = false;
        if options.alignment == Alignment::Compression {
            options.alignment = Alignment::PreCompression;
        }
        if options.alignment != Alignment::PreCompression {
            options.block_size = Self::default().block_size;
        }
        let map = &mut options.datatype_map;
        if options.preserve.lexical {
            map.clear();
        }
        map.retain(|(from, to)| !is_default(from, to));
        let by_name = |(from, _): &([String; 2], _)| [from[1].clone(), from[0].clone()];
        map.sort_by_cached_key(by_name);
        options
    }
}

/// Whether a type is represented so anyway.
fn is_default([uri, local]: &[String; 2], to: &[String; 2]) -> bool {
    uri == XSD && to[0] == EXI_URI && representation(local) == Some(to[1].as_str())
}
