"""Messages against the schemas of the standards: b-2, br-2, t-1 and those that they need."""

import pathlib

from lxml import etree

SOAP11 = "http://schemas.xmlsoap.org/soap/envelope/"
SOAP12 = "http://www.w3.org/2003/05/soap-envelope"
OF_FILE = {
    "http://docs.oasis-open.org/wsn/b-2": "b-2.xsd",
    "http://docs.oasis-open.org/wsn/br-2": "br-2.xsd",
    "http://docs.oasis-open.org/wsn/t-1": "t-1.xsd",
    "http://docs.oasis-open.org/wsrf/bf-2": "bf-2.xsd",
    "http://docs.oasis-open.org/wsrf/r-2": "r-2.xsd",
    "http://docs.oasis-open.org/wsrf/rp-2": "rp-2.xsd",
}


class Schemas:
    """All schemas as one, from the folder that has their files."""

    def __init__(self, folder):
        imports = "".join(
            f'<x:import namespace="{uri}" schemaLocation="{file}"/>'
            for uri, file in OF_FILE.items()
        )
        text = f'<x:schema xmlns:x="http://www.w3.org/2001/XMLSchema">{imports}</x:schema>'
        path = pathlib.Path(folder) / "all.xsd"
        path.write_text(text)
        self.schema = etree.XMLSchema(etree.parse(str(path)))

    def faults_of(self, message):
        """What is wrong with an envelope: a list of sentences, empty if nothing is."""
        root = etree.fromstring(message)
        uri = etree.QName(root).namespace
        if uri not in (SOAP11, SOAP12):
            return [f"not an envelope: {root.tag}"]
        found = []
        for element in self.judged(root, uri):
            if not self.schema.validate(element):
                found += [f"{element.tag}: {error.message}" for error in self.schema.error_log]
        return found

    def judged(self, root, uri):
        """The elements of the standards: what the body holds, or the detail of its fault."""
        body = root.find(f"{{{uri}}}Body")
        for element in body:
            if element.tag == f"{{{uri}}}Fault":
                detail = "detail" if uri == SOAP11 else f"{{{uri}}}Detail"
                yield from element.iterfind(f"{detail}/*")
            elif etree.QName(element).namespace in OF_FILE:
                yield element
