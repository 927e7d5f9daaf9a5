//! UDDI v3 over SOAP 1.1: envelopes, faults with disposition reports, the calls.

mod calls;
mod client;
mod envelope;
mod kept;
mod read;
mod schema;
#[cfg(test)]
mod tests;
mod write;
mod wsdl;

pub(crate) use calls::{Answer, Call, inquire, publish, token};
pub(crate) use client::{answer, find_service, get_service_detail, service_keys, services_of};
pub(crate) use envelope::{Fault, fault, request, response};
pub(crate) use kept::{document, kind_number, of_document};
pub(crate) use read::facts;
pub(crate) use schema::{NAMESPACE, collapsed};
pub(crate) use wsdl::{LANGUAGE_QUERY, LANGUAGE_SCHEMA, Set, wsdl};
