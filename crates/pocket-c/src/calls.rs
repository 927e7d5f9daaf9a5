//! Calls over WSP and CoAP.

use core::ffi::{c_char, c_int, c_void};
use core::mem::{align_of, size_of};
use core::time::Duration;

use pocket::{Address, Content, Error, coap, wsp};

use crate::memory::{OK, bytes, code, room, text};

/// `lw_received`.
#[derive(Debug)]
#[repr(C)]
pub struct Received {
    now_ms: u32,
    came: c_int,
    from: Address,
    len: usize,
}

/// `lw_socket`.
#[derive(Debug)]
#[repr(C)]
pub struct Socket {
    context: *mut c_void,
    send: Option<unsafe extern "C" fn(*mut c_void, *const u8, usize) -> c_int>,
    receive: Option<ReceiveFunction>,
}

type ReceiveFunction =
    unsafe extern "C" fn(*mut c_void, *mut u8, usize, u32, *mut Received) -> c_int;

/// A socket of the caller's as a [`pocket::Socket`].
struct Ours<'a> {
    socket: &'a Socket,
    /// The clock at the call's begin, from which all times are: it may pass its greatest value.
    began_ms: u32,
}

impl pocket::Socket for Ours<'_> {
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        let send = self.socket.send.ok_or(Error::Misuse)?;
        // SAFETY: the header says what the function gets; it keeps no pointer.
        let result = unsafe { send(self.socket.context, datagram.as_ptr(), datagram.len()) };
        if result == 0 { Ok(()) } else { Err(Error::Socket) }
    }

    fn receive(&mut self, room: &mut [u8], limit: Duration) -> Result<pocket::Received, Error> {
        let receive = self.socket.receive.ok_or(Error::Misuse)?;
        // A part of a millisecond is one, lest a wait of none be asked for over and over.
        let limit_s = u32::try_from(limit.as_secs()).unwrap_or(u32::MAX);
        let rest_ms = limit.subsec_nanos().div_ceil(1_000_000);
        let limit_ms = limit_s.saturating_mul(1000).saturating_add(rest_ms);
        let mut received = Received { now_ms: 0, came: 0, from: Address::default(), len: 0 };
        // SAFETY: the header says what the function gets; it keeps no pointer.
        let result = unsafe {
            receive(self.socket.context, room.as_mut_ptr(), room.len(), limit_ms, &raw mut received)
        };
        if result != 0 {
            return Err(Error::Socket);
        }
        let Received { now_ms, came, from, len } = received;
        let datagram = (came != 0).then_some((from, len));
        let now = milliseconds(now_ms.wrapping_sub(self.began_ms));
        Ok(pocket::Received { now, datagram })
    }
}

/// Without a division of 64 bits, which a processor of 32 bits has none for.
fn milliseconds(ms: u32) -> Duration {
    Duration::new((ms / 1000).into(), ms % 1000 * 1_000_000)
}

/// `lw_request`.
#[derive(Debug)]
#[repr(C)]
pub struct Request {
    uri: *const c_char,
    action: *const c_char,
    content: c_int,
    body: *const u8,
    body_len: usize,
}

impl Request {
    /// # Safety
    /// Its pointers are what the header says, for `'a`.
    unsafe fn get<'a>(&self) -> Result<pocket::Request<'a>, Error> {
        let content = match self.content {
            1 => Content::Xml,
            2 => Content::Wbxml,
            3 => Content::Cbor,
            4 => Content::Exi,
            _ => Content::Other,
        };
        // SAFETY: the caller's promise.
        let (uri, action, body) =
            unsafe { (text(self.uri)?, text(self.action)?, bytes(self.body, self.body_len)) };
        Ok(pocket::Request { uri, action, content, body })
    }
}

/// Whether some of the bytes are also bytes of the room: what is read of the request must not be
/// what is written of it.
fn is_in_room(bytes: &[u8], room_at: *const u8, room_len: usize) -> bool {
    let (begin, room_begin) = (bytes.as_ptr().addr(), room_at.addr());
    let room_end = room_begin.saturating_add(room_len);
    !bytes.is_empty() && begin < room_end && room_begin < begin.saturating_add(bytes.len())
}

/// The request, and the room that nothing of it is in.
///
/// # Safety
/// All pointers are what the header says, for `'a`.
unsafe fn apart<'a>(
    request: *const Request,
    room_at: *mut u8,
    room_len: usize,
) -> Result<(pocket::Request<'a>, &'a mut [u8]), Error> {
    // SAFETY: the caller's promise.
    let request = unsafe { (*request).get()? };
    let parts = [request.body, request.uri.as_bytes(), request.action.as_bytes()];
    if parts.into_iter().any(|part| is_in_room(part, room_at, room_len)) {
        return Err(Error::Misuse);
    }
    // SAFETY: the caller's promise, and nothing that was made of pointers before is in the room.
    Ok((request, unsafe { room(room_at, room_len) }))
}

/// `lw_patience`.
#[derive(Debug)]
#[repr(C)]
pub struct Patience {
    first_ms: u32,
    limit_ms: u32,
    copies: u8,
}

impl Patience {
    fn get(&self) -> pocket::Patience {
        pocket::Patience {
            first: milliseconds(self.first_ms),
            copies: self.copies,
            limit: milliseconds(self.limit_ms),
        }
    }
}

/// `lw_answer`.
#[derive(Debug)]
#[repr(C)]
pub struct Answer {
    status: u16,
    sent: u16,
    content: c_int,
    body: *const u8,
    body_len: usize,
}

impl Answer {
    fn of(answer: &pocket::Answer<'_>) -> Self {
        let pocket::Answer { status, content, body, sent } = *answer;
        let (body, body_len) = (body.as_ptr(), body.len());
        Self { status, sent, content: content as c_int, body, body_len }
    }
}

/// `lw_client`, which holds one of the two clients.
#[derive(Debug)]
#[repr(C)]
pub struct Client {
    opaque: [u32; 8],
}

const _: () = assert!(size_of::<wsp::Client>() <= size_of::<Client>());
const _: () = assert!(size_of::<coap::Client>() <= size_of::<Client>());
const _: () = assert!(align_of::<wsp::Client>() <= align_of::<Client>());
const _: () = assert!(align_of::<coap::Client>() <= align_of::<Client>());

/// Begins with calls over WSP.
///
/// # Safety
/// `client` and `gateway` point at what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_wsp_init(client: *mut Client, gateway: *const Address, seed: u32) {
    // SAFETY: the caller's promise; the assertions above say that it fits.
    unsafe { client.cast::<wsp::Client>().write(wsp::Client::new(*gateway, seed)) };
}

/// Begins with calls over CoAP.
///
/// # Safety
/// `client` and `server` point at what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_coap_init(client: *mut Client, server: *const Address, seed: u32) {
    // SAFETY: the caller's promise; the assertions above say that it fits.
    unsafe { client.cast::<coap::Client>().write(coap::Client::new(*server, seed)) };
}

/// Makes a call over WSP.
///
/// # Safety
/// All pointers are what the header says, and `client` was begun by [`lw_wsp_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_wsp_call(
    client: *mut Client,
    socket: *const Socket,
    now_ms: u32,
    request: *const Request,
    patience: *const Patience,
    repeats: c_int,
    room_at: *mut u8,
    room_len: usize,
    answer: *mut Answer,
) -> c_int {
    // SAFETY: the caller's promise.
    let (client, socket, (request, room), patience) = unsafe {
        let apart = match apart(request, room_at, room_len) {
            Ok(apart) => apart,
            Err(error) => return error as c_int,
        };
        (&mut *client.cast::<wsp::Client>(), &*socket, apart, patience.as_ref())
    };
    let mut settings = wsp::Settings { repeats: repeats != 0, ..wsp::Settings::DEFAULT };
    if let Some(patience) = patience {
        settings.patience = patience.get();
    }
    let mut ours = Ours { socket, began_ms: now_ms };
    let called = client.call(&mut ours, Duration::ZERO, &request, &settings, room);
    // SAFETY: the caller's promise.
    unsafe { put(answer, called) }
}

/// Makes a call over CoAP.
///
/// # Safety
/// All pointers are what the header says, and `client` was begun by [`lw_coap_init`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_coap_call(
    client: *mut Client,
    socket: *const Socket,
    now_ms: u32,
    request: *const Request,
    patience: *const Patience,
    room_at: *mut u8,
    room_len: usize,
    answer: *mut Answer,
) -> c_int {
    // SAFETY: the caller's promise.
    let (client, socket, (request, room), patience) = unsafe {
        let apart = match apart(request, room_at, room_len) {
            Ok(apart) => apart,
            Err(error) => return error as c_int,
        };
        (&mut *client.cast::<coap::Client>(), &*socket, apart, patience.as_ref())
    };
    let patience = patience.map_or(coap::DEFAULT_PATIENCE, Patience::get);
    let mut ours = Ours { socket, began_ms: now_ms };
    let called = client.call(&mut ours, Duration::ZERO, &request, &patience, room);
    // SAFETY: the caller's promise.
    unsafe { put(answer, called) }
}

/// # Safety
/// `to` points at an answer of the caller's.
unsafe fn put(to: *mut Answer, called: Result<pocket::Answer<'_>, Error>) -> c_int {
    match called {
        Ok(answer) => {
            // SAFETY: the caller's promise.
            unsafe { to.write(Answer::of(&answer)) };
            OK
        }
        Err(error) => code(Err(error)),
    }
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use super::*;

    unsafe extern "C" fn count(context: *mut c_void, _: *const u8, _: usize) -> c_int {
        // SAFETY: the tests give a counter.
        unsafe { *context.cast::<u32>() += 1 };
        0
    }

    unsafe extern "C" fn time_passes(
        _: *mut c_void,
        _: *mut u8,
        _: usize,
        limit_ms: u32,
        received: *mut Received,
    ) -> c_int {
        // SAFETY: the library's.
        unsafe { (*received).now_ms = limit_ms };
        0
    }

    /// The results over WSP and over CoAP, and how many datagrams left.
    fn call(memory: *mut u8, body: (usize, usize), uri: usize, room: (usize, usize)) -> [c_int; 3] {
        let mut sent = 0_u32;
        let socket = Socket {
            context: (&raw mut sent).cast(),
            send: Some(count),
            receive: Some(time_passes),
        };
        let patience = Patience { first_ms: 1, limit_ms: 1, copies: 1 };
        let peer = Address::default();
        // SAFETY: all is within the tests' memory, which nothing else refers to.
        unsafe {
            let request = Request {
                uri: memory.add(uri).cast(),
                action: ptr::null(),
                content: 1,
                body: memory.add(body.0),
                body_len: body.1,
            };
            let room_at = memory.add(room.0);
            let mut client = Client { opaque: [0; 8] };
            let mut answer =
                Answer { status: 0, sent: 0, content: 0, body: ptr::null(), body_len: 0 };
            let (client, answer) = (&raw mut client, &raw mut answer);
            let (socket, request, patience) =
                (&raw const socket, &raw const request, &raw const patience);
            lw_wsp_init(client, &raw const peer, 1);
            let wsp = lw_wsp_call(client, socket, 0, request, patience, 0, room_at, room.1, answer);
            lw_coap_init(client, &raw const peer, 1);
            let coap = lw_coap_call(client, socket, 0, request, patience, room_at, room.1, answer);
            [wsp, coap, c_int::try_from(sent).unwrap()]
        }
    }

    #[test]
    fn what_is_sent_is_not_in_the_room() {
        const UNANSWERED: c_int = Error::Unanswered as c_int;
        const MISUSE: c_int = Error::Misuse as c_int;
        // A URI of seven bytes with its end at 0, and one more at 500.
        let mut memory = [0; 600];
        memory[..6].copy_from_slice(b"/a/b/c");
        memory[500..506].copy_from_slice(b"/a/b/c");
        let at = memory.as_mut_ptr();
        let good = [UNANSWERED, UNANSWERED, 2];
        let bad = [MISUSE, MISUSE, 0];
        for (body, uri, is_good) in [
            ((7, 93), 0, true),
            ((7, 94), 0, false),
            ((100, 1), 0, false),
            ((200, 50), 0, false),
            ((399, 1), 0, false),
            ((400, 20), 0, true),
            ((50, 450), 0, false),
            // Nothing of it can be read.
            ((200, 0), 0, true),
            ((7, 10), 500, true),
        ] {
            let results = call(at, body, uri, (100, 300));
            assert_eq!(results, if is_good { good } else { bad }, "{body:?}");
        }
        assert_eq!(call(at, (10, 20), 500, (300, 203)), bad, "a URI");
    }
}
