"""The same by zeep: zeep_calls.py WSDL METHOD ITEMS WARM CALLS."""

import sys
import time

import zeep


def main():
    wsdl, method, items, warm, calls = sys.argv[1:]
    items, warm, calls = int(items), int(warm), int(calls)
    service = zeep.Client(wsdl).service
    for at in range(warm + calls):
        if at == warm:
            begin = time.process_time()
        answer = getattr(service, method)()
        found = 0 if answer is None else len(answer)
        if found != items:
            sys.exit(f"zeep: {found} of {items} items")
    print(f"{(time.process_time() - begin) * 1e6 / calls:.2f}")


main()
