//! Clients of this node over CoAP (RFC 7252): what they have over HTTP but for the outbox as a
//! whole, and the inbox to observe (RFC 7641): how much there is of it, whenever that changes.

use proto::coap::{Code, Content, format, option};

use super::super::documents::{self, Part, which};
use super::super::owner::Handle;
use super::{code, form_of, number};
use crate::messaging::forms::Form;
use crate::messaging::machine::{InboxExtent, Input, Reply};
use crate::messaging::message::{Draft, MESSAGE};
use crate::messaging::refusal::{Reason, Refusal};

/// The answer to a request of a client; a refusal's payload is its line.
pub(super) async fn answer(handle: &Handle, request: &Content) -> Content {
    let done = act(handle, request).await;
    done.unwrap_or_else(|refusal| {
        Content::new(code(refusal.reason)).with_payload(refusal.line.into_bytes())
    })
}

/// What an observer of the inbox gets: the greatest number there, and how many nobody has read.
pub(super) fn observed(extent: InboxExtent) -> Content {
    let InboxExtent { last, unread } = extent;
    json(&serde_json::json!({ "last": last, "unread": unread })).with_uint(option::OBSERVE, 0)
}

async fn act(handle: &Handle, request: &Content) -> Result<Content, Refusal> {
    let text = |number| -> Vec<String> {
        request.all(number).map(|value| String::from_utf8_lossy(value).into_owned()).collect()
    };
    let (path, query) = (text(option::URI_PATH), text(option::URI_QUERY).join("&"));
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match (request.code, &path[..]) {
        (Code::POST, ["messages"]) => submit(handle, request).await,
        (Code::GET, ["inbox"]) if request.uint(option::OBSERVE) == Some(0) => {
            Ok(observed(handle.inbox_extent()))
        }
        (Code::GET, ["inbox"]) => {
            let part = Part::parse(&query, true).map_err(Refusal::malformed)?;
            let list = handle.look(move |machine| documents::inbox(machine, &part)).await?;
            Ok(json(&list.document(documents::arrived)))
        }
        (Code::GET, ["inbox", id]) => show(handle, id, &query, request).await,
        (Code::DELETE, ["inbox", id]) => {
            let which = which((*id).to_owned(), &query)?;
            handle.input(|token| Input::Remove { token, which }).await?;
            Ok(Content::new(Code::DELETED))
        }
        (Code::POST, ["inbox", id, "read"]) => {
            let which = which((*id).to_owned(), &query)?;
            handle.input(|token| Input::MarkRead { token, which }).await?;
            Ok(Content::new(Code::CHANGED))
        }
        (Code::GET, ["outbox", id]) => {
            let id = (*id).to_owned();
            let missing = Refusal::new(Reason::Unknown, "no such message in the outbox");
            let found = handle.look(move |machine| machine.find_outgoing(&id).cloned());
            let entry = found.await?.ok_or(missing)?;
            Ok(json(&documents::outgoing(&entry, true)))
        }
        (_, ["messages" | "inbox"] | ["inbox" | "outbox", _] | ["inbox", _, "read"]) => {
            Err(Refusal::new(Reason::Method, "this resource has other methods"))
        }
        _ => {
            let line = "there are /messages, /inbox, /inbox/ID, /inbox/ID/read and /outbox/ID";
            Err(Refusal::new(Reason::Unknown, line))
        }
    }
}

async fn submit(handle: &Handle, request: &Content) -> Result<Content, Refusal> {
    let record = form_of(request)?.decode(&MESSAGE, &request.payload)?;
    let draft = Box::new(Draft::of(record)?);
    match handle.input(|token| Input::Submit { token, draft }).await? {
        Reply::Accepted { id, is_new } => {
            let code = if is_new { Code::CREATED } else { Code::CHANGED };
            let content = Content::new(code).with(option::LOCATION_PATH, b"outbox");
            let content = content.with(option::LOCATION_PATH, id.as_bytes());
            Ok(content.with_payload(id.as_bytes().to_vec()))
        }
        _ => Ok(Content::new(Code::CHANGED)),
    }
}

async fn show(
    handle: &Handle,
    id: &str,
    query: &str,
    request: &Content,
) -> Result<Content, Refusal> {
    let asked = request.uint(option::ACCEPT);
    let fits = |form: &Form| asked.is_none_or(|asked| asked == u32::from(number(*form)));
    let form = Form::ALL.into_iter().find(fits).ok_or_else(|| {
        let line = "Accept is none of 50 (JSON), 41 (XML), 60 (CBOR), 47 (EXI)";
        Refusal::new(Reason::NotAcceptable, line)
    })?;
    let which = which(id.to_owned(), query)?;
    let found =
        handle.look(move |machine| machine.find_arrived(&which).map(|entry| entry.message.clone()));
    let bytes = form.encode(&MESSAGE, &found.await??.record(&[], &[]))?;
    let content =
        Content::new(Code::CONTENT).with_uint(option::CONTENT_FORMAT, number(form).into());
    Ok(content.with_payload(bytes))
}

fn json(value: &serde_json::Value) -> Content {
    Content::new(Code::CONTENT)
        .with_uint(option::CONTENT_FORMAT, format::JSON.into())
        .with_payload(value.to_string().into_bytes())
}
