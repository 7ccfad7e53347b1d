"""Draws figures in child processes of `iosonar.report.render_pool`, in parallel with the computation.

It gets the two pipes of each process, as `3:6`. The first process forks the others once it has imported what draws: it
has no threads yet. Each reads pickled calls of `draw`, and answers each with None or the exception.
"""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress

from iosonar.tuning import tune


def serve(pipes: list[tuple[int, int]], suffix: str) -> None:
    """Answers calls until the input ends; `suffix` is the type of most pictures."""
    from iosonar.figures.drawing import prepare

    tune()
    prepare(suffix)
    # Output printed by libraries must not mix with that of the program.
    sys.stdout = sys.stderr
    own, *others = pipes
    for number, each in enumerate(others):
        if not os.fork():
            _close([own, *others[:number], *others[number + 1 :]])
            _answer(each)
            os._exit(0)
    _close(others)
    _answer(own)
    with suppress(ChildProcessError):
        for _ in others:
            os.wait()


def _close(pipes: list[tuple[int, int]]) -> None:
    """Closes the pipes of other processes, so that each ends with its process; some are closed already."""
    for pipe in pipes:
        for end in pipe:
            with suppress(OSError):
                os.close(end)


def _answer(pipe: tuple[int, int]) -> None:
    from iosonar.figures.drawing import draw

    with open(pipe[0], "rb") as calls, open(pipe[1], "wb") as answers:  # noqa: PTH123 - a descriptor
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
    suffix, *pairs = sys.argv[1:]
    serve([(int(one), int(two)) for one, _, two in (pair.partition(":") for pair in pairs)], suffix)
