"""Draws figures in a child process of `iosonar.report.render_pool`, in parallel to the computation.

It reads pickled calls of `draw` from its standard input and answers each with None or the exception that ended it.
"""

from __future__ import annotations

import pickle
import sys

from iosonar.gc_tuning import collect_rarely


def serve() -> None:
    """Answers until the input ends."""
    from iosonar.figures.with_matplotlib import draw

    collect_rarely()
    calls, answers = sys.stdin.buffer, sys.stdout.buffer
    # What a library may print must not stand among the answers.
    sys.stdout = sys.stderr
    while True:
        try:
            figure, path, size, theme = pickle.load(calls)
        except EOFError:
            return
        answer: Exception | None = None
        try:
            draw(figure, path, size, theme)
        except Exception as error:
            answer = error
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    serve()
