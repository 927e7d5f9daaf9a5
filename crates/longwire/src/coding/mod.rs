//! The codecs alone, without a link: `longwire encode`, `decode`, `codecs` and `compare`.

pub(crate) mod compare;
pub(crate) mod list;
mod measure;
mod options;
mod same;
pub(crate) mod stream;
pub(crate) mod train;
