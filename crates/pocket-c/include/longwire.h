/*
 * longwire.h: SOAP calls over connectionless WSP and over CoAP, without an operating system and
 * without an allocator. docs/pocket.md tells how to use it; examples/call.c does.
 *
 * Nothing here keeps a pointer beyond the call that it was given to, but for writers and readers:
 * what they were given is to stay until they are finished. All texts are in UTF-8 and end with a
 * zero byte. Pointers are not null unless it is said that they may be.
 */
#ifndef LONGWIRE_H
#define LONGWIRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define LW_ASSERT(condition, what) static_assert(condition, what)
#else
#define LW_ASSERT(condition, what) _Static_assert(condition, what)
#endif

/* Why something failed. */
typedef enum lw_error {
    LW_OK = 0,
    LW_NO_ROOM = 1,            /* a buffer of the caller's is too small */
    LW_SOCKET = 2,             /* the caller's socket failed */
    LW_UNANSWERED = 3,         /* no answer in time: whether the call was carried out is not known */
    LW_OTHER_ADDRESS = 4,      /* the same, and answers from other addresses were left out */
    LW_OTHER_TRANSACTION = 5,  /* the same, and answers to other requests were left out */
    LW_BAD_ANSWER = 6,         /* the same, and the last answer was cut off or malformed */
    LW_RESET = 7,              /* the server rejected the message */
    LW_UNSUPPORTED = 8,        /* an option that must be understood, and is not */
    LW_BAD_BLOCK = 9,          /* blocks of an answer do not fit each other */
    LW_CHALLENGED = 10,        /* the server asks twice for what was shown to it */
    LW_TRUNCATED = 20,         /* a document ends amid an item */
    LW_MALFORMED = 21,         /* a document breaks its format */
    LW_TOO_DEEP = 22,          /* elements nested over 16 */
    LW_TOO_MANY_PREFIXES = 23, /* prefixes in scope over 16 */
    LW_UNKNOWN_TOKEN = 24,     /* a token that the table does not have */
    LW_UNKNOWN_KIND = 25,      /* a character set, version or item that is not read here */
    LW_TOO_COMPLEX = 26,       /* more steps than the document's length is worth */
    LW_MISUSE = 27,            /* a call out of order, or text that cannot stand there */
    LW_NOT_SOAP = 30,          /* no SOAP envelope with a body */
    LW_FAULT = 31,             /* the service answered with a fault */
    LW_UNEXPECTED_ELEMENT = 32,
    LW_NOT_A_NUMBER = 33,
    LW_STATUS = 34,            /* the status of an error, and no fault */
    LW_ERROR_FORCE_32 = 0x7fffffff /* never given: it makes the type as wide as the library's */
} lw_error;
LW_ASSERT(sizeof(lw_error) == sizeof(int), "the library has an int for lw_error");

/* What happened, as a phrase in English. */
const char *lw_error_name(lw_error error);

/* What the bytes of a body are. */
typedef enum lw_content {
    LW_OTHER = 0,
    LW_XML = 1,
    LW_WBXML = 2, /* over CoAP only for servers that have agreed on content format 65192 */
    LW_CBOR = 3,
    LW_EXI = 4,
    LW_CONTENT_FORCE_32 = 0x7fffffff /* never given: compilers may make enums of one byte */
} lw_content;
LW_ASSERT(sizeof(lw_content) == sizeof(int), "the library has an int for lw_content");

/* Address and port of a peer, in any layout that the socket always uses: they are only compared. */
typedef struct lw_address {
    uint8_t bytes[18];
} lw_address;

/* How a wait for a datagram ended. */
typedef struct lw_received {
    uint32_t now_ms;  /* the caller's clock, in milliseconds; it may pass its greatest value */
    int came;         /* 0: no datagram came */
    lw_address from;  /* from where one came */
    size_t len;       /* how many bytes it has, also those that did not fit */
} lw_received;

/* What the caller gives to reach the network: two functions that return 0 where all went well. */
typedef struct lw_socket {
    void *context; /* handed to both; may be null */
    /* Sends a datagram to the server. */
    int (*send)(void *context, const uint8_t *datagram, size_t len);
    /* Waits for a datagram until limit_ms have passed, and puts what fits of it into the room. */
    int (*receive)(void *context, uint8_t *room, size_t room_len, uint32_t limit_ms,
                   lw_received *received);
} lw_socket;

/* A call to be made. */
typedef struct lw_request {
    const char *uri;     /* absolute, for a gateway or proxy; over CoAP also a path of the server */
    const char *action;  /* what SOAPAction says, without quotes; may be null */
    lw_content content;  /* what the body is */
    const uint8_t *body; /* may be null where body_len is 0 */
    size_t body_len;
} lw_request;

/* How long a call may take. */
typedef struct lw_patience {
    uint32_t first_ms; /* until the first copy; longer by chance, twice as long each time */
    uint32_t limit_ms; /* everything */
    uint8_t copies;    /* of a datagram, the first one counted */
} lw_patience;

/* What came back. */
typedef struct lw_answer {
    uint16_t status;     /* of HTTP over WSP; over CoAP class and detail, 204 is 2.04 */
    uint16_t sent;       /* datagrams of the request that were sent, copies counted */
    lw_content content;  /* what the body is */
    const uint8_t *body; /* in the caller's room */
    size_t body_len;
} lw_answer;

/* Calls through one WAP gateway, or to one server or proxy of CoAP, one after the other. */
typedef struct lw_client {
    uint32_t opaque[8];
} lw_client;

/* Begins; the seed is to be another one each time that the device starts. */
void lw_wsp_init(lw_client *client, const lw_address *gateway, uint32_t seed);
void lw_coap_init(lw_client *client, const lw_address *server, uint32_t seed);

/*
 * Makes a call, from now_ms of the clock that the socket tells too. The room has the request's
 * datagram first and then the answer; where body, uri or action have bytes in it, LW_MISUSE is
 * returned and nothing is sent. patience may be null: 3 s, 5 copies and 60 s over WSP, 2 s,
 * 5 copies and 93 s over CoAP. repeats: over WSP, the request may leave again where no answer
 * comes; only where the gateway carries no copy out twice, as longwire's does not, or where that
 * does no harm.
 */
lw_error lw_wsp_call(lw_client *client, const lw_socket *socket, uint32_t now_ms,
                     const lw_request *request, const lw_patience *patience, int repeats,
                     uint8_t *room, size_t room_len, lw_answer *answer);
lw_error lw_coap_call(lw_client *client, const lw_socket *socket, uint32_t now_ms,
                      const lw_request *request, const lw_patience *patience, uint8_t *room,
                      size_t room_len, lw_answer *answer);

/* Forms of documents: XML, WBXML, XML in CBOR. What no program names is not linked. */
typedef struct lw_form lw_form;
const lw_form *lw_form_xml(void);
const lw_form *lw_form_wbxml(void);
const lw_form *lw_form_cbor(void);

/* A table of tokens for WBXML, as codec::wbxml packs it. */
typedef struct lw_tokens {
    const uint8_t *packed; /* null: all names are literals, which any reader knows */
    size_t len;
} lw_tokens;

/* The table that every longwire gateway has. */
lw_tokens lw_tokens_soap(void);

/* A document that is written into a room, and one that is read. */
typedef struct lw_writer {
    uint64_t opaque[128];
} lw_writer;
typedef struct lw_reader {
    uint64_t opaque[256];
} lw_reader;

/* A piece of text in a document; no zero byte follows. */
typedef struct lw_piece {
    const char *text;
    size_t len;
} lw_piece;

/* The name of an element that was read: its namespace in up to three pieces. */
typedef struct lw_name {
    lw_piece space[3];
    lw_piece local;
} lw_name;

/* After an error there is no document: all that follows returns the same error. */
lw_error lw_writer_init(lw_writer *writer, uint8_t *room, size_t room_len, const lw_form *form,
                        lw_tokens tokens);
/* Names are to stay until the document is finished. */
lw_error lw_begin(lw_writer *writer, const char *space, const char *local);
lw_error lw_attribute(lw_writer *writer, const char *name, const char *value);
lw_error lw_text(lw_writer *writer, const char *text);
lw_error lw_integer(lw_writer *writer, int32_t value);
lw_error lw_end(lw_writer *writer);
/* Ends the document, which begins at the room's begin. Nothing else may be done then. */
lw_error lw_finish(lw_writer *writer, size_t *len);
/* The envelope of SOAP 1.1 up to its body, and from there to the end of the document. */
lw_error lw_soap_begin(lw_writer *writer);
lw_error lw_soap_end(lw_writer *writer, size_t *len);

lw_error lw_reader_init(lw_reader *reader, const uint8_t *document, size_t len,
                        const lw_form *form, lw_tokens tokens);
/* Goes into the first element of the body; LW_FAULT where that is one. name may be null. */
lw_error lw_soap_open(lw_reader *reader, lw_name *name);
/* Goes into the next element; *found is 0 where the one that is open ends. name may be null. */
lw_error lw_child(lw_reader *reader, int *found, lw_name *name);
/* Goes into the next element, which must have this name. */
lw_error lw_expect(lw_reader *reader, const char *space, const char *local);
/* Goes behind the end of the element that is open. */
lw_error lw_skip(lw_reader *reader);
/* The text of the element that is open, with a zero byte behind it; goes behind its end. */
lw_error lw_read_text(lw_reader *reader, char *room, size_t room_len);
lw_error lw_read_integer(lw_reader *reader, int32_t *value);
/* What a fault says, cut where the room ends, with a zero byte behind it. */
lw_error lw_read_fault(lw_reader *reader, char *room, size_t room_len);

#undef LW_ASSERT
#ifdef __cplusplus
}
#endif

#endif
