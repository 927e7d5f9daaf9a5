//! Members of a mesh with a clock that is a number: what they hold, when anything fails.

mod chaos;
mod hostile;
mod net;
mod scenes;
mod values;
