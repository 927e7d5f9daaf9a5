//! The functions of `longwire.h`: [`pocket`] for callers in C, as a static library that needs no
//! operating system and no allocator.
//!
//! `cargo xtask pocket` builds it. What a caller breaks of the header's rules no check can find;
//! what comes from the network breaks none of them.

#![no_std]

mod calls;
mod documents;
mod memory;

pub use calls::{
    Answer, Client, Patience, Received, Request, Socket, lw_coap_call, lw_coap_init, lw_wsp_call,
    lw_wsp_init,
};
pub use documents::{
    FoundName, Piece, ReaderRoom, TokenBytes, WriterRoom, lw_attribute, lw_begin, lw_child, lw_end,
    lw_expect, lw_finish, lw_form_cbor, lw_form_wbxml, lw_form_xml, lw_integer, lw_read_fault,
    lw_read_integer, lw_read_text, lw_reader_init, lw_skip, lw_soap_begin, lw_soap_end,
    lw_soap_open, lw_text, lw_tokens_soap, lw_writer_init,
};
pub use memory::lw_error_name;

/// There is nobody to tell, and no check of the library fails on any input.
#[cfg(pocket_library)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
