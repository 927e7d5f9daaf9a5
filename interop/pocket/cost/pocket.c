/*
 * Calls of the benchmark's method by the client for devices, and what processor time they take:
 *
 *   pocket wsp|coap xml|wbxml|cbor SOURCE PORT URI METHOD ITEMS WARM CALLS
 *
 * The gateway is on 127.0.0.1, and SOURCE is the address of the loopback interface that calls come
 * from: a host has a share of what a gateway remembers. An answer has as many numbers as ITEMS says, or the exit status is 1.
 * It prints microseconds of the processor a call, the kernel's among them.
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "longwire.h"

#define SPACE "urn:longwire:benchmark:1"
#define ROOM_BYTES 16384

static int descriptor;
static lw_address peer;

static uint32_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u);
}

static int send_datagram(void *context, const uint8_t *datagram, size_t len)
{
    (void)context;
    return send(descriptor, datagram, len, 0) == (ssize_t)len ? 0 : -1;
}

/* The socket is connected: all that comes is of the peer. */
static int receive_datagram(void *context, uint8_t *room, size_t room_len, uint32_t limit_ms,
                            lw_received *received)
{
    struct timeval limit = {limit_ms / 1000, (suseconds_t)(limit_ms % 1000) * 1000 + 1};
    static uint32_t set_ms;
    ssize_t len;
    (void)context;
    if (set_ms != limit_ms) {
        if (setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) return -1;
        set_ms = limit_ms;
    }
    len = recv(descriptor, room, room_len, MSG_TRUNC);
    if (len < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED) return -1;
    received->now_ms = now_ms();
    received->came = len >= 0;
    received->from = peer;
    received->len = len >= 0 ? (size_t)len : 0;
    return 0;
}

/* How many elements are in the answer. */
static lw_error count(lw_reader *reader, int *items)
{
    lw_name name;
    int found = 1;
    int32_t value;
    lw_error error = lw_soap_open(reader, &name);
    *items = 0;
    while (error == LW_OK) {
        error = lw_child(reader, &found, &name);
        if (error != LW_OK || !found) return error;
        error = lw_read_integer(reader, &value);
        *items += 1;
    }
    return error;
}

static int call(lw_client *client, int is_coap, const char *uri, const char *method,
                const lw_form *form, lw_content content, lw_tokens tokens, int items)
{
    static uint8_t body[1024], room[ROOM_BYTES];
    char action[64];
    lw_socket udp = {NULL, send_datagram, receive_datagram};
    lw_writer writer;
    lw_reader reader;
    lw_answer answer;
    size_t len;
    int found = 0;
    lw_error error = lw_writer_init(&writer, body, sizeof body, form, tokens);
    if (error == LW_OK) error = lw_soap_begin(&writer);
    if (error == LW_OK) error = lw_begin(&writer, SPACE, method);
    if (error == LW_OK) error = lw_end(&writer);
    if (error == LW_OK) error = lw_soap_end(&writer, &len);
    if (error == LW_OK) {
        lw_request request = {uri, action, content, body, len};
        snprintf(action, sizeof action, "%s#%s", SPACE, method);
        error = is_coap ? lw_coap_call(client, &udp, now_ms(), &request, NULL, room, sizeof room,
                                       &answer)
                        : lw_wsp_call(client, &udp, now_ms(), &request, NULL, 1, room, sizeof room,
                                      &answer);
    }
    if (error == LW_OK) error = lw_reader_init(&reader, answer.body, answer.body_len, form, tokens);
    if (error == LW_OK) error = count(&reader, &found);
    if (error != LW_OK || found != items) {
        fprintf(stderr, "pocket: %s, %d of %d items\n", lw_error_name(error), found, items);
        return 1;
    }
    return 0;
}

static double cpu_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
    struct sockaddr_in from_address, to;
    double from_us = 0;
    lw_client client;
    const lw_form *form = lw_form_xml();
    lw_content content = LW_XML;
    lw_tokens tokens = {NULL, 0};
    int is_coap, items, warm, calls;
    if (argc != 10) return 2;
    is_coap = strcmp(argv[1], "coap") == 0;
    if (strcmp(argv[2], "wbxml") == 0) {
        form = lw_form_wbxml();
        content = LW_WBXML;
        tokens = lw_tokens_soap();
    } else if (strcmp(argv[2], "cbor") == 0) {
        form = lw_form_cbor();
        content = LW_CBOR;
    }
    items = atoi(argv[7]);
    warm = atoi(argv[8]);
    calls = atoi(argv[9]);
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t)atoi(argv[4]));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memset(&peer, 0, sizeof peer);
    memset(&from_address, 0, sizeof from_address);
    from_address.sin_family = AF_INET;
    if (inet_pton(AF_INET, argv[3], &from_address.sin_addr) != 1) return 2;
    descriptor = socket(AF_INET, SOCK_DGRAM, 0);
    if (descriptor < 0 ||
        bind(descriptor, (struct sockaddr *)&from_address, sizeof from_address) != 0) {
        return 1;
    }
    if (connect(descriptor, (struct sockaddr *)&to, sizeof to) != 0) return 1;
    if (is_coap) {
        lw_coap_init(&client, &peer, (uint32_t)getpid());
    } else {
        lw_wsp_init(&client, &peer, (uint32_t)getpid());
    }
    for (int at = 0; at < warm + calls; at++) {
        if (at == warm) from_us = cpu_us();
        if (call(&client, is_coap, argv[5], argv[6], form, content, tokens, items) != 0) return 1;
    }
    printf("%.2f\n", (cpu_us() - from_us) / calls);
    return 0;
}
