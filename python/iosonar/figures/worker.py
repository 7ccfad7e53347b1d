"""Draws figures in a child process of `iosonar.report.render_pool`, in parallel with the computation.

It reads pickled calls of `draw` from standard input, and answers each with None or the exception.
"""

from __future__ import annotations

import pickle
import sys

from iosonar.gc_tuning import collect_rarely


def serve() -> None:
    """Answers calls until the input ends."""
    from iosonar.figures.with_matplotlib import draw

    collect_rarely()
    calls, answers = sys.stdin.buffer, sys.stdout.buffer
    # Output printed by libraries must not mix with the answers.
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
