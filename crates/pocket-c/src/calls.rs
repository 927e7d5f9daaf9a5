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
    let (client, socket, request, patience, room) = unsafe {
        let client = &mut *client.cast::<wsp::Client>();
        let request = match (*request).get() {
            Ok(request) => request,
            Err(error) => return error as c_int,
        };
        (client, &*socket, request, patience.as_ref(), room(room_at, room_len))
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
    let (client, socket, request, patience, room) = unsafe {
        let client = &mut *client.cast::<coap::Client>();
        let request = match (*request).get() {
            Ok(request) => request,
            Err(error) => return error as c_int,
        };
        (client, &*socket, request, patience.as_ref(), room(room_at, room_len))
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
