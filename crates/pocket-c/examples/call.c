/*
 * A SOAP call over POSIX UDP:
 *
 *   call [-p wsp|coap] [-f xml|wbxml|cbor] [-t MS] [-r BYTES] [-s] [-n] GATEWAY PORT URI
 *        NAMESPACE OPERATION [NAME VALUE]...
 *
 * The gateway is an address, of IPv4 or IPv6. Each element of the answer is printed with its text.
 * -f wbxml has SOAP's tokens; with -n all names are literals. -s: the request is sent once. -r: the
 * room for datagrams and the answer. It and the body have as many bytes as are said to the library
 * and not one more, so that tools which watch memory see each byte too many.
 * Exit status: 0 for an answer, 1 for a fault or none, 2 for bad use.
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "longwire.h"

#define ACTION_BYTES 256

struct udp {
    int descriptor;
    struct sockaddr_storage peer;
    socklen_t peer_len;
};

static uint32_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u);
}

/* Host and port, one behind the other; of IPv4 the rest stays zero. */
static lw_address address_of(const struct sockaddr_storage *from)
{
    lw_address address;
    memset(&address, 0, sizeof address);
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
        memcpy(address.bytes, &v4->sin_addr, 4);
        memcpy(address.bytes + 16, &v4->sin_port, 2);
    } else {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
        memcpy(address.bytes, &v6->sin6_addr, 16);
        memcpy(address.bytes + 16, &v6->sin6_port, 2);
    }
    return address;
}

static int send_datagram(void *context, const uint8_t *datagram, size_t len)
{
    const struct udp *udp = context;
    ssize_t sent = sendto(udp->descriptor, datagram, len, 0, (const struct sockaddr *)&udp->peer,
                          udp->peer_len);
    /* Nobody there, or no room: as good as lost, and sent again. */
    if (sent < 0 && (errno == ECONNREFUSED || errno == ENOBUFS || errno == EAGAIN)) return 0;
    return sent == (ssize_t)len ? 0 : -1;
}

static int receive_datagram(void *context, uint8_t *room, size_t room_len, uint32_t limit_ms,
                            lw_received *received)
{
    const struct udp *udp = context;
    struct pollfd ready = {udp->descriptor, POLLIN, 0};
    struct sockaddr_storage from;
    struct iovec part = {room, room_len};
    struct msghdr message;
    ssize_t len = -1;
    int count = poll(&ready, 1, limit_ms > 60000 ? 60000 : (int)limit_ms);
    if (count < 0 && errno != EINTR) return -1;
    if (count > 0) {
        memset(&from, 0, sizeof from);
        memset(&message, 0, sizeof message);
        message.msg_name = &from;
        message.msg_namelen = sizeof from;
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        len = recvmsg(udp->descriptor, &message, 0);
        if (len < 0 && errno != EAGAIN && errno != ECONNREFUSED && errno != EINTR) return -1;
    }
    received->now_ms = now_ms();
    received->came = len >= 0;
    if (len >= 0) {
        received->from = address_of(&from);
        /* What was cut has at least one byte more than there was room for. */
        received->len = (size_t)len + ((message.msg_flags & MSG_TRUNC) != 0 ? 1u : 0u);
    }
    return 0;
}

static int open_udp(struct udp *udp, const char *host, const char *port)
{
    char *end;
    unsigned long number = strtoul(port, &end, 10);
    struct sockaddr_in *v4 = (struct sockaddr_in *)&udp->peer;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&udp->peer;
    memset(udp, 0, sizeof *udp);
    if (*port == '\0' || *end != '\0' || number == 0 || number > 65535) return -1;
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)number);
        udp->peer_len = sizeof *v4;
    } else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)number);
        udp->peer_len = sizeof *v6;
    } else {
        return -1;
    }
    udp->descriptor = socket(udp->peer.ss_family, SOCK_DGRAM, 0);
    return udp->descriptor;
}

static lw_error write_call(uint8_t *room, size_t room_len, const lw_form *form, lw_tokens tokens,
                           char **words, int count, size_t *len)
{
    lw_writer writer;
    lw_error error = lw_writer_init(&writer, room, room_len, form, tokens);
    if (error == LW_OK) error = lw_soap_begin(&writer);
    if (error == LW_OK) error = lw_begin(&writer, words[0], words[1]);
    for (int at = 2; error == LW_OK && at + 1 < count; at += 2) {
        error = lw_begin(&writer, words[0], words[at]);
        if (error == LW_OK) error = lw_text(&writer, words[at + 1]);
        if (error == LW_OK) error = lw_end(&writer);
    }
    if (error == LW_OK) error = lw_end(&writer);
    if (error == LW_OK) error = lw_soap_end(&writer, len);
    return error;
}

/* Prints elements that have no elements in them, with their texts. */
static lw_error print_answer(lw_reader *reader, const lw_answer *answer)
{
    static char text[4096];
    lw_name name;
    int found = 0, depth = 1;
    lw_error error = lw_soap_open(reader, &name);
    if (error == LW_FAULT) {
        lw_error inner = lw_read_fault(reader, text, sizeof text);
        fprintf(stderr, "fault: %s\n", inner == LW_OK ? text : lw_error_name(inner));
        return error;
    }
    if (error != LW_OK) return error;
    if (answer->status / 100 != 2) return LW_STATUS;
    printf("%.*s\n", (int)name.local.len, name.local.text);
    while (depth > 0) {
        lw_reader inside;
        error = lw_child(reader, &found, &name);
        if (error != LW_OK) return error;
        if (!found) {
            depth--;
            continue;
        }
        /* A reader may be copied: one goes ahead, and if there is text only, both do. */
        inside = *reader;
        error = lw_read_text(&inside, text, sizeof text);
        if (error == LW_OK) {
            printf("%*s%.*s: %s\n", 2 * depth, "", (int)name.local.len, name.local.text, text);
            *reader = inside;
        } else if (error == LW_UNEXPECTED_ELEMENT) {
            printf("%*s%.*s\n", 2 * depth, "", (int)name.local.len, name.local.text);
            depth++;
        } else {
            return error;
        }
    }
    return LW_OK;
}

static int usage(const char *what)
{
    fprintf(stderr,
            "call: %s\nusage: call [-p wsp|coap] [-f xml|wbxml|cbor] [-t MS] [-r BYTES] [-s] [-n] "
            "GATEWAY PORT URI NAMESPACE OPERATION [NAME VALUE]...\n",
            what);
    return 2;
}

struct options {
    const char *protocol;
    const char *form;
    uint32_t limit_ms;
    size_t room_len;
    int repeats;
    int literals;
};

/* What a call has of its own. */
struct memory {
    uint8_t *body;
    size_t body_len;
    uint8_t *room;
};

/* Writes the body, in memory of just its length, and gets the room. */
static lw_error prepare(struct memory *memory, const struct options *options, const lw_form *form,
                        lw_tokens tokens, char **words, int count)
{
    static uint8_t written[2048];
    lw_error error =
        write_call(written, sizeof written, form, tokens, words, count, &memory->body_len);
    if (error != LW_OK) return error;
    memory->body = malloc(memory->body_len);
    memory->room = malloc(options->room_len);
    if (memory->body == NULL || memory->room == NULL) return LW_NO_ROOM;
    memcpy(memory->body, written, memory->body_len);
    return LW_OK;
}

static int print_call(const struct options *options, struct udp *udp, const char *uri,
                      const char *action, const struct memory *memory, lw_content content,
                      const lw_form *form)
{
    lw_address peer = address_of(&udp->peer);
    lw_socket socket = {udp, send_datagram, receive_datagram};
    lw_request request = {uri, action, content, memory->body, memory->body_len};
    lw_patience patience = {1000, options->limit_ms, 5};
    lw_client client;
    lw_answer answer;
    lw_reader reader;
    struct timespec seed;
    lw_error error;
    uint32_t began = now_ms();

    clock_gettime(CLOCK_REALTIME, &seed);
    if (strcmp(options->protocol, "coap") == 0) {
        lw_coap_init(&client, &peer, (uint32_t)seed.tv_nsec);
        error = lw_coap_call(&client, &socket, began, &request, &patience, memory->room,
                             options->room_len, &answer);
    } else {
        lw_wsp_init(&client, &peer, (uint32_t)seed.tv_nsec);
        error = lw_wsp_call(&client, &socket, began, &request, &patience, options->repeats,
                            memory->room, options->room_len, &answer);
    }
    if (error != LW_OK) {
        fprintf(stderr, "call: %s\n", lw_error_name(error));
        return 1;
    }
    fprintf(stderr, "status %u, %zu and %zu bytes, %u sent, %u ms\n", (unsigned)answer.status,
            request.body_len, answer.body_len, (unsigned)answer.sent,
            (unsigned)(now_ms() - began));
    if (answer.content != request.content) {
        fprintf(stderr, "call: the answer is of another kind\n");
        return 1;
    }
    /* Who answers may have another table than the request: the document says which. */
    error = lw_reader_init(&reader, answer.body, answer.body_len, form, lw_tokens_soap());
    if (error == LW_OK) error = print_answer(&reader, &answer);
    if (error != LW_OK) {
        fprintf(stderr, "call: the answer: %s\n", lw_error_name(error));
        return 1;
    }
    return 0;
}

static int call(const struct options *options, struct udp *udp, const char *uri, char **words,
                int count)
{
    static const lw_tokens literals = {NULL, 0};
    char action[ACTION_BYTES];
    struct memory memory = {NULL, 0, NULL};
    lw_tokens tokens = literals;
    const lw_form *form = lw_form_xml();
    lw_content content = LW_XML;
    lw_error error;
    int status = 2;

    if (strcmp(options->form, "wbxml") == 0) {
        form = lw_form_wbxml();
        content = LW_WBXML;
        if (!options->literals) tokens = lw_tokens_soap();
    } else if (strcmp(options->form, "cbor") == 0) {
        form = lw_form_cbor();
        content = LW_CBOR;
    }
    if (snprintf(action, sizeof action, "%s#%s", words[0], words[1]) >= (int)sizeof action) {
        return usage("the namespace is too long");
    }
    error = prepare(&memory, options, form, tokens, words, count);
    if (error == LW_OK) {
        status = print_call(options, udp, uri, action, &memory, content, form);
    } else {
        fprintf(stderr, "call: the request: %s\n", lw_error_name(error));
    }
    free(memory.body);
    free(memory.room);
    return status;
}

int main(int argc, char **argv)
{
    struct options options = {"wsp", "xml", 60000, 32768, 1, 0};
    struct udp udp;
    int option, status;
    while ((option = getopt(argc, argv, "p:f:t:r:sn")) != -1) {
        switch (option) {
        case 'p': options.protocol = optarg; break;
        case 'f': options.form = optarg; break;
        case 't': options.limit_ms = (uint32_t)strtoul(optarg, NULL, 10); break;
        case 'r': options.room_len = strtoul(optarg, NULL, 10); break;
        case 's': options.repeats = 0; break;
        case 'n': options.literals = 1; break;
        default: return usage("no such option");
        }
    }
    argc -= optind;
    argv += optind;
    if (argc < 5 || argc % 2 == 0) return usage("words are missing");
    if (options.room_len == 0) return usage("a room has one byte at least");
    if (open_udp(&udp, argv[0], argv[1]) < 0) return usage("no address and port");
    status = call(&options, &udp, argv[2], argv + 3, argc - 3);
    close(udp.descriptor);
    return status;
}
