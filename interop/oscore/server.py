"""A server of aiocoap that protects all by OSCORE: python server.py PORT CREDENTIALS.

CREDENTIALS is a file of aiocoap's credentials. Requests without protection get 4.01.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import aiocoap
from aiocoap import oscore_sitewrapper, resource

LARGE = bytes(i * 7 % 251 for i in range(10_000))


class Large(resource.Resource):
    """10 KB, in blocks."""

    async def render_get(self, request):
        return aiocoap.Message(payload=LARGE, content_format=42)


class Stored(resource.Resource):
    """What was put there."""

    def __init__(self):
        super().__init__()
        self.content = b"nothing"

    async def render_get(self, request):
        return aiocoap.Message(payload=self.content)

    async def render_put(self, request):
        self.content = request.payload
        return aiocoap.Message(code=aiocoap.CHANGED, payload=b"%d" % len(self.content))


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


class Protected(resource.Resource):
    """Whether a request came protected: an application of its own could refuse it."""

    async def render_get(self, request):
        return aiocoap.Message(payload=type(request.remote).__name__.encode())


async def main(port, credentials):
    site, clock = resource.Site(), Clock()
    site.add_resource(["large"], Large())
    site.add_resource(["stored"], Stored())
    site.add_resource(["clock"], clock)
    site.add_resource(["protected"], Protected())
    context = await aiocoap.Context.create_server_context(None, bind=("127.0.0.1", port))
    context.server_credentials.load_from_dict(
        {":c": {"oscore": json.loads(Path(credentials).read_text())}}
    )
    context.serversite = oscore_sitewrapper.OscoreSiteWrapper(site, context.server_credentials)
    clock.task = asyncio.create_task(clock.run())
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
