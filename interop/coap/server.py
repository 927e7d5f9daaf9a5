"""A server of aiocoap: python server.py PORT."""

import asyncio
import sys
import time

import aiocoap
from aiocoap import resource

LARGE = bytes(i * 7 % 251 for i in range(100_000))


class Large(resource.Resource):
    """100 KB, in blocks."""

    async def render_get(self, request):
        return aiocoap.Message(payload=LARGE, content_format=42)


class Stored(resource.Resource):
    """What was put there; FETCH gives as much of it as the body says."""

    def __init__(self):
        super().__init__()
        self.content = b"nothing"

    async def render_get(self, request):
        return aiocoap.Message(payload=self.content)

    async def render_put(self, request):
        self.content = request.payload
        return aiocoap.Message(code=aiocoap.CHANGED, payload=b"%d" % len(self.content))

    async def render_fetch(self, request):
        return aiocoap.Message(payload=self.content[: int(request.payload)])

    async def render_delete(self, request):
        self.content = b""
        return aiocoap.Message(code=aiocoap.DELETED)


class Clock(resource.ObservableResource):
    """The time, which changes five times a second."""

    def __init__(self):
        super().__init__()
        self.task = None

    async def run(self):
        while True:
            await asyncio.sleep(0.2)
            self.updated_state()

    async def render_get(self, request):
        return aiocoap.Message(payload=f"{time.time():.3f}".encode(), content_format=0)


async def main(port):
    site, clock = resource.Site(), Clock()
    site.add_resource(
        [".well-known", "core"], resource.WKCResource(site.get_resources_as_linkheader)
    )
    site.add_resource(["large"], Large())
    site.add_resource(["stored"], Stored())
    site.add_resource(["clock"], clock)
    context = await aiocoap.Context.create_server_context(site, bind=("127.0.0.1", port))
    clock.task = asyncio.create_task(clock.run())
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()
    await context.shutdown()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
