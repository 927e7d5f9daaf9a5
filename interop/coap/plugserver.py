"""The resources of the ETSI CoAP plugtests on a server of aiocoap: python plugserver.py PORT."""

import asyncio
import sys

import aiocoap
from aiocoap import resource

LARGE = bytes(i * 7 % 251 for i in range(1700))
SEPARATE_S = 0.5
TICK_S = 0.3


class Test(resource.Resource):
    """/test and the like: what comes is taken, and never kept."""

    rt, ct = "Type1 Type2", 0

    async def render_get(self, request):
        query = b"&".join(part.encode() for part in request.opt.uri_query)
        return aiocoap.Message(payload=b"test" + query, content_format=0)

    async def render_put(self, request):
        return aiocoap.Message(code=aiocoap.CHANGED)

    async def render_post(self, request):
        answer = aiocoap.Message(code=aiocoap.CREATED)
        answer.opt.location_path = ("location1", "location2", "location3")
        answer.opt.location_query = ("first=1", "second=2")
        return answer

    async def render_delete(self, request):
        return aiocoap.Message(code=aiocoap.DELETED)


class Separate(Test):
    """Its answer takes longer than an acknowledgement may."""

    async def render_get(self, request):
        await asyncio.sleep(SEPARATE_S)
        return await super().render_get(request)


class Formats(resource.Resource):
    """/multi-format: text and XML."""

    if_, ct = "If1", "0 41"

    async def render_get(self, request):
        accept = request.opt.accept
        if accept not in (None, 0, 41):
            return aiocoap.Message(code=aiocoap.NOT_ACCEPTABLE)
        body = b"<test/>" if accept == 41 else b"test"
        return aiocoap.Message(payload=body, content_format=41 if accept == 41 else 0)


class Validate(resource.Resource):
    """/validate: answers 2.03 for a tag that it has; PUT asks for If-Match."""

    content = b"version 1"

    async def render_get(self, request):
        tag = self.content[-1:]
        if tag in request.opt.etags:
            return aiocoap.Message(code=aiocoap.VALID, etag=tag)
        return aiocoap.Message(payload=self.content, content_format=0, etag=tag)

    async def render_put(self, request):
        if request.opt.if_match and self.content[-1:] not in request.opt.if_match:
            return aiocoap.Message(code=aiocoap.PRECONDITION_FAILED)
        Validate.content = request.payload
        return aiocoap.Message(code=aiocoap.CHANGED)


class Create(resource.Resource):
    """/create1: may be made once."""

    made = False

    async def render_put(self, request):
        if request.opt.if_none_match and Create.made:
            return aiocoap.Message(code=aiocoap.PRECONDITION_FAILED)
        Create.made = True
        return aiocoap.Message(code=aiocoap.CREATED)


class Large(resource.Resource):
    """/large, /large-update, /large-create, /large-post."""

    def __init__(self):
        super().__init__()
        self.content = LARGE

    async def render_get(self, request):
        return aiocoap.Message(payload=self.content, content_format=0)

    async def render_put(self, request):
        self.content = request.payload
        return aiocoap.Message(code=aiocoap.CHANGED)

    async def render_post(self, request):
        self.content = request.payload
        return aiocoap.Message(code=aiocoap.CHANGED, payload=request.payload, content_format=0)


class Observed(resource.ObservableResource):
    """/obs: changes all the time; PUT with another format, DELETE ends it."""

    obs = True

    def __init__(self):
        super().__init__()
        self.count, self.format, self.there = 0, 0, True

    def tick(self):
        self.count += 1
        self.updated_state()

    async def render_get(self, request):
        if not self.there:
            return aiocoap.Message(code=aiocoap.NOT_FOUND)
        payload = b"%d" % self.count
        return aiocoap.Message(payload=payload, content_format=self.format, max_age=5)

    async def render_put(self, request):
        self.format = request.opt.content_format or 0
        self.updated_state()
        return aiocoap.Message(code=aiocoap.CHANGED)

    async def render_delete(self, request):
        self.there = False
        self.updated_state()
        return aiocoap.Message(code=aiocoap.DELETED)

    async def render_post(self, request):
        self.there, self.format = True, 0
        return aiocoap.Message(code=aiocoap.CHANGED)


async def main(port):
    site, observed = resource.Site(), Observed()
    core = resource.WKCResource(site.get_resources_as_linkheader)
    site.add_resource([".well-known", "core"], core)
    for path in ("test", "query", "location-query", "seg1/seg2/seg3"):
        site.add_resource(path.split("/"), Test())
    site.add_resource(["separate"], Separate())
    site.add_resource(["multi-format"], Formats())
    site.add_resource(["validate"], Validate())
    site.add_resource(["create1"], Create())
    for path in ("large", "large-update", "large-create", "large-post"):
        site.add_resource([path], Large())
    site.add_resource(["obs"], observed)
    context = await aiocoap.Context.create_server_context(site, bind=("127.0.0.1", port))
    print("ready", flush=True)
    while True:
        await asyncio.sleep(TICK_S)
        observed.tick()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
