/*
 * The same by gSOAP, with what it makes of the service's WSDL: gsoap URL METHOD ITEMS WARM CALLS.
 * The connection is kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "BenchmarkSoap11.nsmap"
#include "soapH.h"

static double cpu_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int call(struct soap *soap, const char *url, const char *method, int items)
{
    int found = 0, failed;
    if (strcmp(method, "nop") == 0) {
        struct _ns1__nop request;
        struct _ns1__nopResponse answer;
        failed = soap_call___ns1__nop(soap, url, NULL, &request, &answer);
    } else {
        struct _ns1__getIntArray request;
        struct _ns1__getIntArrayResponse answer;
        failed = soap_call___ns1__getIntArray(soap, url, NULL, &request, &answer);
        found = failed ? 0 : answer.__sizeitem;
    }
    if (failed || found != items) {
        soap_print_fault(soap, stderr);
        fprintf(stderr, "gsoap: %d of %d items\n", found, items);
    }
    soap_destroy(soap);
    soap_end(soap);
    return failed || found != items;
}

int main(int argc, char **argv)
{
    double from_us = 0;
    struct soap *soap = soap_new1(SOAP_IO_KEEPALIVE);
    int items, warm, calls;
    if (argc != 6 || soap == NULL) return 2;
    items = atoi(argv[3]);
    warm = atoi(argv[4]);
    calls = atoi(argv[5]);
    for (int at = 0; at < warm + calls; at++) {
        if (at == warm) from_us = cpu_us();
        if (call(soap, argv[1], argv[2], items) != 0) return 1;
    }
    printf("%.2f\n", (cpu_us() - from_us) / calls);
    soap_free(soap);
    return 0;
}
