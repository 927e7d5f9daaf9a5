//! The services that the papers put behind the link, and their measuring clients.
