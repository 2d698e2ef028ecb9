"""What schemathesis cannot know of the API; see scripts/check-api, which names this file."""

import json
import re

import schemathesis

# Long polls that are asked for in earnest would take most of the time of a run.
SHORT = 0.05


@schemathesis.hook
def before_call(_context, case, **_kwargs):
    """Keeps a run short: shortens waits that the server would accept."""
    query = case.query or {}
    wait = query.get("wait")
    if isinstance(wait, str) and re.fullmatch(r"[0-9.]+(ms|s|m)|PT[0-9.]+[SM]", wait):
        query["wait"] = f"{int(SHORT * 1000)}ms"
    if case.operation.path.endswith("/events"):
        # A stream ends when it is asked to, or never.
        query.setdefault("wait", f"{int(SHORT * 1000)}ms")
        case.query = query
    body = case.body
    if isinstance(body, dict) and isinstance(body.get("waitSeconds"), (int, float)):
        if SHORT < body["waitSeconds"] <= 60:
            body["waitSeconds"] = SHORT


@schemathesis.serializer("application/x-ndjson")
def lines(_context, value):
    """A batch as lines is one text, by the document."""
    return {"data": (value if isinstance(value, str) else json.dumps(value)).encode()}
