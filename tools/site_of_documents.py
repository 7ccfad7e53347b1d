"""Builds the documentation as a site, offline: tools/site_of_documents.py IOSONAR MDBOOK OUT.

The pages are the documents as they stand, with the reference of commands as the program prints it, and a gallery.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]

PAGES = {
    "Tutorials": ["choose-storage", "find-a-stall", "size-a-cache", "gate-in-ci", "read-diagrams"],
    "Tasks": ["guide", "pitfalls", "glossary", "running", "recording", "devices", "reports", "sweep", "campaign"],
    "Loads": ["loads", "workloads", "scripts", "job-files", "distributions", "transforms", "formats", "data", "verify"],
    "Files": ["files", "files-record", "files-strace", "files-replay", "files-orders"],
    "Models": ["cache", "simulate"],
    "Reference": [
        *("schema", "info", "generated/findings", "generated/job-options", "generated/campaign-variables"),
        *("library", "generated/library", "packages"),
    ],
    "Background": ["benchmarks", "decisions", "reference-pictures", "generated/scenarios"],
}
"""The documents by chapter; a test finds those that are missing."""

OTHERS = {
    "ARCHITECTURE.md": "Architecture",
    "CONTRIBUTING.md": "Contributing",
    "SECURITY.md": "Security",
    "CHANGELOG.md": "Changes",
    "loads/README.md": "Natural loads",
    "tests/scenarios/README.md": "Scenarios",
    "tests/scenarios/answers.md": "Answers of eight pages",
    "fuzz/README.md": "Fuzzing",
}
"""Further pages with their titles, after the chapters."""

LINK = re.compile(r"\]\(([^)\s#]+)")
"""The address of a link, or of a picture, without its anchor."""

BOOK = """[book]
title = "iosonar"
src = "src"
language = "en"
[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
no-section-label = true
[output.html.search]
enable = true
limit-results = 30
"""


def document(name: str) -> str:
    """Its path from the top."""
    return f"docs/tutorials/{name}.md" if name in PAGES["Tutorials"] else f"docs/{name}.md"


def title(file: Path) -> str:
    """The first heading."""
    found = re.search(r"^# (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else file.stem


def help_of(iosonar: str, words: list[str]) -> str:
    """The help of a command, as it prints it."""
    return subprocess.run([iosonar, *words, "--help"], capture_output=True, text=True, check=True).stdout


def commands(text: str) -> list[str]:
    """The names of commands in a help text: lines of two spaces and a name, below a heading of commands."""
    found = []
    for part in text.split("\n\n"):
        heading, *lines = part.split("\n")
        is_list = re.fullmatch(r"[A-Z][a-z ]+:", heading) and heading not in ("Options:", "Examples:", "Arguments:")
        found += [name[1] for line in lines if is_list and (name := re.match(r"  ([a-z][a-z-]*)  ", line))]
    return [name for name in dict.fromkeys(found) if name != "help"]


def reference(iosonar: str, words: list[str]) -> str:
    """A command and those below it, as a page."""
    text = help_of(iosonar, words)
    page = f"{'#' * len(words)} iosonar {' '.join(words)}\n\n```text\n{text.strip()}\n```\n\n"
    below = commands(text) if "[COMMAND]" in text or "<COMMAND>" in text or "<KIND>" in text else []
    return page + "".join(reference(iosonar, [*words, name]) for name in below)


def pictures() -> list[Path]:
    """The pictures of the documents."""
    return sorted((TOP / "docs/pictures").glob("*.png"))


def gallery() -> str:
    """All pictures, each with the name of its file."""
    shown = (f"## {each.stem.replace('-', ' ')}\n\n![{each.stem}](docs/pictures/{each.name})\n" for each in pictures())
    return "# Gallery\n\n" + "\n".join(shown)


def without_code(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"(?ms)^```.*?^```", "", text)


def copy(names: list[str], source: Path) -> None:
    """Copies files of the repository, and all files that they link."""
    while names:
        name = names.pop()
        if (source / name).exists():
            continue
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(TOP / name, source / name)
        if name.endswith(".md"):
            links = LINK.findall(without_code((TOP / name).read_text(encoding="utf-8")))
            linked = [os.path.normpath(Path(name).parent / each) for each in links if ":" not in each]
            names += [each for each in linked if (TOP / each).is_file()]


def write_sources(iosonar: str, book: Path) -> None:
    """Writes the sources of the book."""
    source = book / "src"
    source.mkdir(parents=True)
    names = [document(name) for names in PAGES.values() for name in names]
    copy(["README.md", *OTHERS, *names, *(f"docs/pictures/{each.name}" for each in pictures())], source)
    summary = ["# Summary", "", "[iosonar](README.md)"]
    for chapter, names in PAGES.items():
        summary += ["", f"# {chapter}", ""]
        summary += [f"- [{title(TOP / document(name))}]({document(name)})" for name in names]
        if chapter == "Reference":
            (source / "commands").mkdir()
            summary.append("- [Commands]()")
            for name in commands(help_of(iosonar, [])):
                (source / f"commands/{name}.md").write_text(reference(iosonar, [name]), encoding="utf-8")
                summary.append(f"  - [iosonar {name}](commands/{name}.md)")
        if chapter == "Background":
            results = sorted((source / "bench/results").glob("*.md"))
            summary.append("- [Results of measurements]()")
            summary += [f"  - [{title(each)}](bench/results/{each.name})" for each in results]
    (source / "gallery.md").write_text(gallery(), encoding="utf-8")
    summary += ["", "---", "", "[Gallery](gallery.md)", *(f"[{name}]({file})" for file, name in OTHERS.items()), ""]
    (source / "SUMMARY.md").write_text("\n".join(summary), encoding="utf-8")
    (book / "book.toml").write_text(BOOK, encoding="utf-8")


def main(iosonar: str, mdbook: str, out: Path) -> None:
    """Writes the sources of the book, then the site."""
    shutil.rmtree(out, ignore_errors=True)
    write_sources(iosonar, out / "book")
    subprocess.run([mdbook, "build", str(out / "book"), "--dest-dir", str((out / "html").resolve())], check=True)
    print(out / "html/index.html")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
