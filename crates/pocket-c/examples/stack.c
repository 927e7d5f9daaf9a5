/*
 * How deep the stack gets in a call: it runs on a stack that was painted, with a socket that
 * answers from memory, in each form and over each protocol.
 */
#define _XOPEN_SOURCE 700
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "longwire.h"

#define STACK_BYTES 65536
#define PAINT 0xa5
/* Most that a call may take: a device with 16 KB of memory has room for it. */
#define MAX_STACK_BYTES 8192

static const char soap[] = "http://schemas.xmlsoap.org/soap/envelope/";
static const char service[] = "urn:longwire:benchmark:1";

static uint8_t stack[STACK_BYTES];
static uint8_t request_room[1024], room[2048], answer_room[1024];
static ucontext_t outside, inside;

/* What is measured. */
static int over_coap;
static const lw_form *form;
static lw_content content;
static lw_error result;

struct echo {
    uint8_t datagram[2048];
    size_t len;
    const uint8_t *body;
    size_t body_len;
};

static int keep(void *context, const uint8_t *datagram, size_t len)
{
    struct echo *echo = context;
    echo->len = len < sizeof echo->datagram ? len : sizeof echo->datagram;
    memcpy(echo->datagram, datagram, echo->len);
    return 0;
}

/* An answer with the ids of the request and the body that was made before. */
static int answer(void *context, uint8_t *to, size_t to_len, uint32_t limit_ms,
                  lw_received *received)
{
    struct echo *echo = context;
    uint8_t head[16];
    size_t head_len = 0;
    (void)limit_ms;
    if (over_coap) {
        uint8_t const format = form == lw_form_xml() ? 41 : 60;
        head[head_len++] = 0x64;
        head[head_len++] = 0x44;
        memcpy(head + head_len, echo->datagram + 2, 6);
        head_len += 6;
        head[head_len++] = 0xc1;
        head[head_len++] = format;
        head[head_len++] = 0xff;
    } else {
        head[head_len++] = echo->datagram[0];
        head[head_len++] = 0x04;
        head[head_len++] = 0x20;
        head[head_len++] = 0x01;
        head[head_len++] = form == lw_form_wbxml() ? 0xa9 : 0xa8;
    }
    memset(received, 0, sizeof *received);
    received->came = 1;
    received->len = head_len + echo->body_len;
    if (received->len <= to_len) {
        memcpy(to, head, head_len);
        memcpy(to + head_len, echo->body, echo->body_len);
    }
    return 0;
}

static lw_error document(uint8_t *to, size_t to_len, const char *name, int items, size_t *len)
{
    lw_writer writer;
    lw_error error = lw_writer_init(&writer, to, to_len, form, lw_tokens_soap());
    if (error == LW_OK) error = lw_begin(&writer, soap, "Envelope");
    if (error == LW_OK) error = lw_begin(&writer, soap, "Body");
    if (error == LW_OK) error = lw_begin(&writer, service, name);
    for (int item = 0; error == LW_OK && item < items; item++) {
        error = lw_begin(&writer, service, "item");
        if (error == LW_OK) error = lw_integer(&writer, 1000 + item);
        if (error == LW_OK) error = lw_end(&writer);
    }
    if (error == LW_OK) error = lw_end(&writer);
    if (error == LW_OK) error = lw_soap_end(&writer, len);
    return error;
}

static lw_error read_answer(const lw_answer *from)
{
    lw_reader reader;
    lw_error error =
        lw_reader_init(&reader, from->body, from->body_len, form, lw_tokens_soap());
    int found = 0, count = 0;
    int32_t number = 0;
    if (error == LW_OK) error = lw_soap_open(&reader, NULL);
    while (error == LW_OK) {
        error = lw_child(&reader, &found, NULL);
        if (error != LW_OK || !found) break;
        error = lw_read_integer(&reader, &number);
        if (error == LW_OK && number != 1000 + count++) return LW_NOT_A_NUMBER;
    }
    return error == LW_OK && count != 10 ? LW_UNEXPECTED_ELEMENT : error;
}

static struct echo echo;

static void call(void)
{
    lw_client client;
    lw_address peer;
    lw_socket socket = {&echo, keep, answer};
    lw_request request = {"http://192.0.2.1/soap", "urn:a", content, request_room, 0};
    lw_answer got;
    size_t len = 0;
    memset(&peer, 0, sizeof peer);
    result = document(request_room, sizeof request_room, "getIntArray", 0, &len);
    request.body_len = len;
    if (result == LW_OK && over_coap) {
        lw_coap_init(&client, &peer, 1);
        result = lw_coap_call(&client, &socket, 0, &request, NULL, room, sizeof room, &got);
    } else if (result == LW_OK) {
        lw_wsp_init(&client, &peer, 1);
        result = lw_wsp_call(&client, &socket, 0, &request, NULL, 1, room, sizeof room, &got);
    }
    if (result == LW_OK) result = read_answer(&got);
}

static size_t used(void (*function)(void))
{
    size_t free_bytes = 0;
    memset(stack, PAINT, sizeof stack);
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    inside.uc_link = &outside;
    makecontext(&inside, function, 0);
    swapcontext(&outside, &inside);
    while (free_bytes < sizeof stack && stack[free_bytes] == PAINT) free_bytes++;
    return sizeof stack - free_bytes;
}

static void nothing(void)
{
}

int main(void)
{
    static const struct {
        const char *name;
        int over_coap;
        const lw_form *(*form)(void);
        lw_content content;
    } cases[] = {
        {"WSP, XML", 0, lw_form_xml, LW_XML},
        {"WSP, WBXML", 0, lw_form_wbxml, LW_WBXML},
        {"CoAP, XML", 1, lw_form_xml, LW_XML},
        {"CoAP, CBOR", 1, lw_form_cbor, LW_CBOR},
    };
    size_t const floor = used(nothing);
    int failed = 0;
    printf("| call and answer of ten numbers | stack at its deepest, bytes |\n| --- | ---: |\n");
    for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
        size_t bytes;
        over_coap = cases[at].over_coap;
        form = cases[at].form();
        content = cases[at].content;
        result = document(answer_room, sizeof answer_room, "getIntArrayResponse", 10,
                          &echo.body_len);
        echo.body = answer_room;
        if (result != LW_OK) return 2;
        bytes = used(call) - floor;
        if (result != LW_OK) {
            printf("%s: %s\n", cases[at].name, lw_error_name(result));
            failed = 1;
        }
        failed |= bytes > MAX_STACK_BYTES;
        printf("| %s | %zu |\n", cases[at].name, bytes);
    }
    printf("\nthe bound is %d bytes\n", MAX_STACK_BYTES);
    return failed;
}
