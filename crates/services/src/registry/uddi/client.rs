//! Requests and answers of UDDI v3 as a client has them.

use super::super::core::KIND;
use super::super::element::Element;
use super::super::model::{Bag, Reference, Service};
use super::super::quality::{Rung, TMODEL_LATENCY};
use super::envelope::SOAP;
use super::read;
use super::schema::{self, NAMESPACE};
use super::write::Writer;
use crate::messaging::shown;

/// A find_service of a kind on a rung.
pub(crate) fn find_service(kind: Option<&str>, rung: Option<Rung>, limit: usize) -> String {
    let mut writer = Writer::default();
    writer.root("find_service", &[("maxRows", &limit.clamp(1, 1000).to_string())]);
    let kind = kind.map(|kind| Reference::new(KIND, "", kind));
    let rung = rung.map(|rung| Reference::new(TMODEL_LATENCY, "", rung.value()));
    let references = kind.into_iter().chain(rung).collect();
    let bag = Bag { references, groups: Vec::new() };
    if bag.is_empty() {
        writer.start("findQualifiers", &[]);
        writer.text("findQualifier", &[], "approximateMatch");
        writer.end("findQualifiers");
        writer.text("name", &[], "%");
    }
    writer.categories(&bag);
    writer.end("find_service");
    writer.out
}

/// A get_serviceDetail of these services.
pub(crate) fn get_service_detail(keys: &[String]) -> String {
    let mut writer = Writer::default();
    writer.root("get_serviceDetail", &[]);
    keys.iter().for_each(|key| writer.text("serviceKey", &[], key));
    writer.end("get_serviceDetail");
    writer.out
}

/// The message in an answer.
///
/// # Errors
/// A line: what is no answer, and a fault with its report.
pub(crate) fn answer(document: &str) -> Result<Element, String> {
    let envelope = Element::parse(document).map_err(|refusal| refusal.line)?;
    let body = envelope.children.iter().find(|part| part.is(SOAP, "Body"));
    let body = body.ok_or_else(|| "the answer is no envelope of SOAP 1.1".to_owned())?;
    let Some(message) = body.children.first() else { return Ok(Element::default()) };
    if message.is(SOAP, "Fault") {
        return Err(fault_line(message));
    }
    let mut message = message.clone();
    without_foreign(&mut message);
    schema::check(&mut message).map_err(|refusal| refusal.line)?;
    Ok(message)
}

/// What of a service is not ours to read: signatures.
fn without_foreign(element: &mut Element) {
    element.children.retain(|child| child.namespace.as_deref() == Some(NAMESPACE));
    element.attributes.retain(|one| {
        one.namespace.as_deref() != Some("http://www.w3.org/2001/XMLSchema-instance")
    });
    element.children.iter_mut().for_each(without_foreign);
}

fn fault_line(fault: &Element) -> String {
    let result = fault.child("detail").and_then(|detail| detail.child("dispositionReport"));
    let result = result.and_then(|report| report.child("result"));
    let info = result.and_then(|result| result.child("errInfo"));
    let text = info.or_else(|| fault.child("faultstring")).map(|text| text.text.as_str());
    let code = info.and_then(|info| info.attribute("errCode")).unwrap_or("a fault");
    let number = result.and_then(|result| result.attribute("errno")).unwrap_or_default();
    let line = format!("{code} {number}: {}", text.unwrap_or_default());
    shown(line.trim())
}

/// The keys in a serviceList.
pub(crate) fn service_keys(list: &Element) -> Vec<String> {
    let infos = list.child("serviceInfos").map(|infos| &infos.children[..]);
    let infos = infos.unwrap_or_default().iter();
    infos.filter_map(|info| info.attribute("serviceKey").map(str::to_owned)).collect()
}

/// The services in a serviceDetail.
pub(crate) fn services_of(detail: &Element) -> Vec<(String, Service)> {
    let services = detail.all("businessService").map(read::service);
    services.map(|(key, service)| (key.unwrap_or_else(|| "".into()).to_string(), service)).collect()
}
