"""A forward proxy of CoAP on aiocoap's stack, towards origins of HTTP: python proxy.py PORT.

aiocoap's own proxy goes on to servers of CoAP alone; what is of aiocoap here is everything between
the socket and whole requests: messages, duplicates, blocks, options.
"""

import asyncio
import sys
import urllib.error
import urllib.request

import aiocoap
from aiocoap import resource

FORMATS = {"application/xml": 41, "text/xml": 41, "application/json": 50,
           "application/octet-stream": 42, "text/plain": 0}
MEDIA = {41: "application/xml", 50: "application/json", 42: "application/octet-stream",
         0: "text/plain"}
CODES = {201: aiocoap.CREATED, 404: aiocoap.NOT_FOUND, 403: aiocoap.FORBIDDEN}


def fetch(request):
    """The request by HTTP; status, fields and body."""
    media = MEDIA.get(request.opt.content_format and int(request.opt.content_format))
    made = urllib.request.Request(request.opt.proxy_uri, method=request.code.name,
                                  data=request.payload or None)
    if media:
        made.add_header("Content-Type", media)
    if request.opt.accept is not None:
        made.add_header("Accept", MEDIA[int(request.opt.accept)])
    try:
        with urllib.request.urlopen(made, timeout=20) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.headers, answer.read()


class Proxy(resource.Resource, resource.PathCapable):
    """Answers what has Proxy-Uri."""

    async def render(self, request):
        if not request.opt.proxy_uri:
            return aiocoap.Message(code=aiocoap.NOT_FOUND)
        try:
            status, headers, body = await asyncio.to_thread(fetch, request)
        except OSError as error:
            return aiocoap.Message(code=aiocoap.BAD_GATEWAY, payload=str(error).encode())
        code = CODES.get(status)
        if code is None:
            changed = {aiocoap.GET: aiocoap.CONTENT, aiocoap.DELETE: aiocoap.DELETED}
            code = changed.get(request.code, aiocoap.CHANGED) if status < 300 else aiocoap.BAD_GATEWAY
        answer = aiocoap.Message(code=code, payload=body)
        media = (headers.get("Content-Type") or "").split(";")[0]
        if body and media in FORMATS:
            answer.opt.content_format = FORMATS[media]
        return answer


async def main(port):
    context = await aiocoap.Context.create_server_context(Proxy(), bind=("127.0.0.1", port))
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()
    await context.shutdown()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
