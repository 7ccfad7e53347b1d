"""Terms that a page explains where they first appear, as in docs/glossary.md."""

from __future__ import annotations

import re

TERMS = {
    "delays?": "Issue time minus scheduled time: how late a request was issued",
    "latency|latencies": "From the issue of a request to its completion",
    "demanded|demands?": "What the load asks of the storage, whether it can deliver it or not",
    "faithful": "Requests that nothing but the replayer held back were issued within 50 µs of their time",
    "held back": "A request waits because the queue depth is full or because it overlaps one in flight",
    "pushed back": "A request waits until the request that it overlaps has completed",
    "in flight": "Issued, but not yet completed",
    "depth": "The most requests that may be in flight at the same time",
    "wraps? around|wrap-around": "The load is larger than its target, so positions are taken modulo its size",
    "working set": "The data that is accessed at all within a window of time",
    "reuse distances?": "How much other data is accessed before the same data is accessed again",
    "steady": "Latency no longer drifts: the warm-up is over",
    r"p99\.99": "1 request in 10,000 is slower",
    r"p99\.9": "1 request in 1,000 is slower",
    "p99": "1 request in 100 is slower",
    "p95": "1 request in 20 is slower",
    "p50|median": "Half of the requests are slower",
}
"""Regular expressions of whole words, and what they mean."""

_PATTERNS = [(re.compile(rf"(?<![\w.-])(?:{term})(?![\w-]|\.\d)"), meaning) for term, meaning in TERMS.items()]
_OUTSIDE = re.compile(r"(<code>.*?</code>|<[^>]*>)")
"""Tags, and code: names and commands are no prose."""


class Explained:
    """Explains each term once."""

    def __init__(self) -> None:
        self._open = list(_PATTERNS)

    def html(self, html: str) -> str:
        """The text with the terms that were not explained before as abbreviations with a title."""
        parts = _OUTSIDE.split(html)
        # Text and tags alternate.
        for place in range(0, len(parts), 2):
            parts[place] = self._text(parts[place])
        return "".join(parts)

    def _text(self, text: str) -> str:
        found = [(match, each) for each in self._open if (match := each[0].search(text))]
        taken, end = [], 0
        for match, each in sorted(found, key=lambda one: (one[0].start(), -one[0].end())):
            if match.start() < end:
                continue
            taken += [text[end : match.start()], f'<abbr title="{each[1]}">{match.group()}</abbr>']
            end = match.end()
            self._open.remove(each)
        return "".join((*taken, text[end:]))
