//! Documents and the envelope around them.

use core::ffi::{c_char, c_int};
use core::mem::{align_of, size_of};
use core::ptr;

use pocket::document::{CBOR, Form, Found, Name, Reader, WBXML, Writer, XML};
use pocket::{Error, Tokens, soap};

use crate::memory::{OK, bytes, code, room, text};

/// `lw_writer`.
#[derive(Debug)]
#[repr(C)]
pub struct WriterRoom {
    opaque: [u64; 128],
}

/// `lw_reader`.
#[derive(Debug)]
#[repr(C)]
pub struct ReaderRoom {
    opaque: [u64; 256],
}

const _: () = assert!(size_of::<Writer<'_>>() <= size_of::<WriterRoom>());
const _: () = assert!(align_of::<Writer<'_>>() <= align_of::<WriterRoom>());
const _: () = assert!(size_of::<Reader<'_>>() <= size_of::<ReaderRoom>());
const _: () = assert!(align_of::<Reader<'_>>() <= align_of::<ReaderRoom>());

/// `lw_tokens`.
#[derive(Debug)]
#[repr(C)]
pub struct TokenBytes {
    packed: *const u8,
    len: usize,
}

impl TokenBytes {
    /// # Safety
    /// Its pointer is what the header says, for `'a`.
    unsafe fn get<'a>(&self) -> Result<Tokens<'a>, Error> {
        if self.packed.is_null() {
            return Ok(Tokens::NONE);
        }
        // SAFETY: the caller's promise.
        Tokens::new(unsafe { bytes(self.packed, self.len) })
    }
}

/// `lw_piece`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Piece {
    text: *const c_char,
    len: usize,
}

impl Piece {
    fn of(text: &str) -> Self {
        Self { text: text.as_ptr().cast(), len: text.len() }
    }
}

/// `lw_name`.
#[derive(Debug)]
#[repr(C)]
pub struct FoundName {
    space: [Piece; 3],
    local: Piece,
}

/// # Safety
/// `to` is null or points at a name of the caller's.
unsafe fn put_name(to: *mut FoundName, found: &Found<'_>) {
    if to.is_null() {
        return;
    }
    let space = found.space.parts().map(Piece::of);
    // SAFETY: the caller's promise.
    unsafe { to.write(FoundName { space, local: Piece::of(found.local) }) };
}

/// The form of XML.
#[unsafe(no_mangle)]
pub extern "C" fn lw_form_xml() -> *const Form {
    &raw const XML
}

/// The form of WBXML.
#[unsafe(no_mangle)]
pub extern "C" fn lw_form_wbxml() -> *const Form {
    &raw const WBXML
}

/// The form of XML in CBOR.
#[unsafe(no_mangle)]
pub extern "C" fn lw_form_cbor() -> *const Form {
    &raw const CBOR
}

/// The table that every gateway of longwire's has.
#[unsafe(no_mangle)]
pub extern "C" fn lw_tokens_soap() -> TokenBytes {
    let packed = Tokens::SOAP.packed();
    TokenBytes { packed: packed.as_ptr(), len: packed.len() }
}

/// # Safety
/// `writer` was begun by [`lw_writer_init`] and is not finished.
unsafe fn writer<'a>(writer: *mut WriterRoom) -> &'a mut Writer<'static> {
    // SAFETY: the caller's promise.
    unsafe { &mut *writer.cast() }
}

/// # Safety
/// `reader` was begun by [`lw_reader_init`].
unsafe fn reader<'a>(reader: *mut ReaderRoom) -> &'a mut Reader<'static> {
    // SAFETY: the caller's promise.
    unsafe { &mut *reader.cast() }
}

/// Begins a document.
///
/// # Safety
/// All pointers are what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_writer_init(
    writer: *mut WriterRoom,
    room_at: *mut u8,
    room_len: usize,
    form: *const Form,
    tokens: TokenBytes,
) -> c_int {
    // SAFETY: the caller's promise; the assertions above say that it fits.
    unsafe {
        let tokens = match tokens.get() {
            Ok(tokens) => tokens,
            Err(error) => return error as c_int,
        };
        let made = Writer::new(room(room_at, room_len), &*form, tokens);
        writer.cast::<Writer<'_>>().write(made);
    }
    OK
}

/// Begins an element.
///
/// # Safety
/// All pointers are what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_begin(
    to: *mut WriterRoom,
    space: *const c_char,
    local: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe {
        text(space).and_then(|space| writer(to).begin(Name { space, local: text(local)? }))
    })
}

/// Gives the element an attribute.
///
/// # Safety
/// All pointers are what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_attribute(
    to: *mut WriterRoom,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe { text(name).and_then(|name| writer(to).attribute(name, text(value)?)) })
}

/// Appends text.
///
/// # Safety
/// All pointers are what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_text(to: *mut WriterRoom, content: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe { text(content).and_then(|content| writer(to).text(content)) })
}

/// Appends a number.
///
/// # Safety
/// The pointer is what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_integer(to: *mut WriterRoom, value: i32) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe { writer(to) }.integer(value))
}

/// Ends the innermost element.
///
/// # Safety
/// The pointer is what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_end(to: *mut WriterRoom) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe { writer(to) }.end())
}

/// # Safety
/// `len` points at a number of the caller's.
unsafe fn put_len(len: *mut usize, result: Result<usize, Error>) -> c_int {
    match result {
        Ok(value) => {
            // SAFETY: the caller's promise.
            unsafe { len.write(value) };
            OK
        }
        Err(error) => error as c_int,
    }
}

/// Ends the document.
///
/// # Safety
/// All pointers are what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_finish(from: *mut WriterRoom, len: *mut usize) -> c_int {
    // SAFETY: the caller's promise; what is read out is not used again.
    unsafe {
        let writer = ptr::read(from.cast::<Writer<'_>>());
        put_len(len, writer.finish())
    }
}

/// Begins the envelope.
///
/// # Safety
/// The pointer is what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_soap_begin(to: *mut WriterRoom) -> c_int {
    // SAFETY: the caller's promise.
    code(soap::begin(unsafe { writer(to) }))
}

/// Ends the envelope and the document.
///
/// # Safety
/// All pointers are what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_soap_end(from: *mut WriterRoom, len: *mut usize) -> c_int {
    // SAFETY: the caller's promise; what is read out is not used again.
    unsafe {
        let writer = ptr::read(from.cast::<Writer<'_>>());
        put_len(len, soap::end(writer))
    }
}

/// Begins to read a document.
///
/// # Safety
/// All pointers are what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_reader_init(
    reader: *mut ReaderRoom,
    document: *const u8,
    len: usize,
    form: *const Form,
    tokens: TokenBytes,
) -> c_int {
    // SAFETY: the caller's promise; the assertions above say that it fits.
    unsafe {
        let tokens = match tokens.get() {
            Ok(tokens) => tokens,
            Err(error) => return error as c_int,
        };
        let made = Reader::new(bytes(document, len), &*form, tokens);
        reader.cast::<Reader<'_>>().write(made);
    }
    OK
}

/// Goes into the first element of the body.
///
/// # Safety
/// All pointers are what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_soap_open(from: *mut ReaderRoom, name: *mut FoundName) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { code(soap::open(reader(from)).map(|found| put_name(name, &found))) }
}

/// Goes into the next element.
///
/// # Safety
/// All pointers are what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_child(
    from: *mut ReaderRoom,
    found: *mut c_int,
    name: *mut FoundName,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let child = soap::child(reader(from));
        code(child.map(|child| {
            found.write(c_int::from(child.is_some()));
            if let Some(child) = child {
                put_name(name, &child);
            }
        }))
    }
}

/// Goes into the next element, which must have this name.
///
/// # Safety
/// All pointers are what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_expect(
    from: *mut ReaderRoom,
    space: *const c_char,
    local: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    code(unsafe {
        text(space).and_then(|space| {
            let name = Name { space, local: text(local)? };
            soap::expect(reader(from), &name)
        })
    })
}

/// Goes behind the end of the element that is open.
///
/// # Safety
/// The pointer is what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_skip(from: *mut ReaderRoom) -> c_int {
    // SAFETY: the caller's promise.
    code(soap::skip(unsafe { reader(from) }))
}

/// The text of the element that is open.
///
/// # Safety
/// All pointers are what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_read_text(
    from: *mut ReaderRoom,
    room_at: *mut c_char,
    room_len: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { terminated(room_at, room_len, |room| soap::text(reader(from), room).map(str::len)) }
}

/// The number in the element that is open.
///
/// # Safety
/// All pointers are what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_read_integer(from: *mut ReaderRoom, value: *mut i32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { code(soap::integer(reader(from)).map(|number| value.write(number))) }
}

/// What a fault says.
///
/// # Safety
/// All pointers are what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lw_read_fault(
    from: *mut ReaderRoom,
    room_at: *mut c_char,
    room_len: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { terminated(room_at, room_len, |room| soap::fault(reader(from), room).map(str::len)) }
}

/// Has a text written, and puts a zero byte behind it.
///
/// # Safety
/// `at` points at `len` bytes of the caller's.
unsafe fn terminated(
    at: *mut c_char,
    len: usize,
    write: impl FnOnce(&mut [u8]) -> Result<usize, Error>,
) -> c_int {
    // SAFETY: the caller's promise.
    let room = unsafe { room(at.cast(), len) };
    let Some((_, free)) = room.split_last_mut() else { return Error::NoRoom as c_int };
    let written = write(free);
    let end = *written.as_ref().unwrap_or(&0);
    if let Some(end) = room.get_mut(end) {
        *end = 0;
    }
    code(written.map(|_| ()))
}
