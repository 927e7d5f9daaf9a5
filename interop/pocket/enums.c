/*
 * A call from a program whose enums may be of one byte: what it says of its body must arrive,
 * whatever stood in the memory of its request before.
 */
#include <stdio.h>
#include <string.h>

#include "longwire.h"

static uint8_t datagram[512];
static size_t datagram_len;

static int keep(void *context, const uint8_t *bytes, size_t len)
{
    (void)context;
    datagram_len = len < sizeof datagram ? len : sizeof datagram;
    memcpy(datagram, bytes, datagram_len);
    return 0;
}

/* Nothing comes, and time passes. */
static int wait(void *context, uint8_t *room, size_t room_len, uint32_t limit_ms,
                lw_received *received)
{
    static uint32_t now_ms;
    (void)context;
    (void)room;
    (void)room_len;
    now_ms += limit_ms;
    memset(received, 0, sizeof *received);
    received->now_ms = now_ms;
    return 0;
}

int main(void)
{
    static const char uri[] = "http://a.example/";
    static const uint8_t body[] = "body";
    static uint8_t room[256];
    lw_socket const socket = {NULL, keep, wait};
    lw_patience const patience = {1, 1, 1};
    lw_address gateway;
    lw_client client;
    lw_request request;
    lw_answer answer;
    size_t type_at;
    lw_error error;

    memset(&gateway, 0, sizeof gateway);
    memset(&request, 0xa5, sizeof request);
    request.uri = uri;
    request.action = NULL;
    request.content = LW_WBXML;
    request.body = body;
    request.body_len = sizeof body - 1;
    lw_wsp_init(&client, &gateway, 1);
    error = lw_wsp_call(&client, &socket, 0, &request, &patience, 0, room, sizeof room, &answer);
    /* Transaction id, Post, two lengths, the URI; then the media type, which has a code. */
    type_at = 4 + sizeof uri - 1;
    if (error != LW_UNANSWERED || datagram_len <= type_at) {
        printf("%s, %zu bytes sent\n", lw_error_name(error), datagram_len);
        return 1;
    }
    printf("media type 0x%02x\n", datagram[type_at]);
    return datagram[type_at] == 0xa9 ? 0 : 1;
}
