"""Prints as JSON how a PDF file reads: title, language, standards, tags, texts and alternative texts."""

import collections
import json
import sys

from pypdf import PdfReader
from pypdf.generic import ArrayObject, DictionaryObject

reader = PdfReader(sys.argv[1])
root = reader.trailer["/Root"]
tags, alternatives = collections.Counter(), []


def visit(node):
    node = node.get_object()
    if isinstance(node, ArrayObject):
        for child in node:
            visit(child)
    elif isinstance(node, DictionaryObject):
        if "/S" in node:
            tags[str(node["/S"])] += 1
        if "/Alt" in node:
            alternatives.append(str(node["/Alt"]))
        if "/K" in node:
            visit(node.raw_get("/K"))


def pictures(page):
    objects = page["/Resources"].get_object().get("/XObject", DictionaryObject()).get_object()
    return sum(shown.get_object()["/Subtype"] == "/Image" for shown in objects.values())


visit(root["/StructTreeRoot"])
json.dump({
    "title": reader.metadata.title,
    "language": str(root["/Lang"]),
    "marked": root["/MarkInfo"]["/Marked"].value,
    "standards": root["/Metadata"].get_object().get_data().decode(),
    "outline": [entry.title for entry in reader.outline if not isinstance(entry, list)],
    "pages": len(reader.pages),
    "pictures": sum(pictures(page) for page in reader.pages),
    "tags": tags,
    "alternatives": alternatives,
    "text": "\n".join(page.extract_text() for page in reader.pages),
}, sys.stdout)
