"""Builds the documentation as a site, offline: tools/site_of_documents.py IOSONAR MDBOOK OUT.

The pages are the documents as they stand, with the reference of commands as the program prints it, and a gallery.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from site_links import faults

TOP = Path(__file__).resolve().parents[1]

PAGES = {
    "Tutorials": ["choose-storage", "find-a-stall", "size-a-cache", "gate-in-ci", "read-diagrams"],
    "Tasks": ["guide", "pitfalls", "glossary", "running", "recording", "devices", "reports", "sweep", "campaign"],
    "Loads": ["loads", "workloads", "scripts", "job-files", "distributions", "transforms", "formats", "data", "verify"],
    "System calls to files": ["files", "files-record", "files-strace", "files-replay", "files-orders"],
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
    "tests/scenarios/answers.md": "Review of eight report pages",
    "fuzz/README.md": "Fuzzing",
}
"""Further pages with their titles, after the chapters."""

LINK = re.compile(r"(?<=\]\()[^)\s#]+")
"""The address of a link, or of a picture, without its anchor."""

PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
"""A picture: its caption and its address."""

CODE = re.compile(r"(?ms)(^```.*?^```)")
"""A block of code."""

BOOK = """[book]
title = "iosonar"
src = "src"
language = "en"
[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
no-section-label = true
additional-css = ["site.css"]
[output.html.search]
enable = true
limit-results = 30
"""


STYLE = """/* Help texts have 100 columns, which fit into a line. Outputs scroll, help and other code are wrapped. */
:root { --content-max-width: 920px; }
.content pre > code:not(.language-text), .content pre > code.help { white-space: pre-wrap; overflow-wrap: anywhere; }
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
    page = f"{'#' * len(words)} iosonar {' '.join(words)}\n\n```text,help\n{text.strip()}\n```\n\n"
    below = commands(text) if "[COMMAND]" in text or "<COMMAND>" in text or "<KIND>" in text else []
    return page + "".join(reference(iosonar, [*words, name]) for name in below)


def documents() -> list[str]:
    """All documents by their paths from the top, in the order of the site."""
    results = sorted(path.relative_to(TOP).as_posix() for path in (TOP / "bench/results").glob("*.md"))
    return ["README.md", *(document(name) for names in PAGES.values() for name in names), *results, *OTHERS]


@dataclass(frozen=True)
class Use:
    """A picture in a section of a document."""

    caption: str
    document: str
    section: str

    @property
    def link(self) -> str:
        """Where it is in the site, as a link."""
        where = in_site(self.document) + (f"#{anchor(self.section)}" if self.section else "")
        return f"[{self.section.replace('`', '') or title(TOP / self.document)}]({where})"


def uses() -> dict[str, list[Use]]:
    """Where each picture is shown, by its name."""
    found: dict[str, list[Use]] = {}
    for name in documents():
        section = ""
        for line in without_code((TOP / name).read_text(encoding="utf-8")).split("\n"):
            section = heading[1] if (heading := re.match(r"##+ (.+)", line)) else section
            for caption, address in PICTURE.findall(line):
                found.setdefault(Path(address).name, []).append(Use(caption, name, section))
    return found


def gallery() -> str:
    """All pictures by the document that shows them first, each with its caption, and links to where it is shown."""
    page, last = "# Gallery\n", ""
    for picture, shown in uses().items():
        first = shown[0]
        page += f"\n## {title(TOP / first.document)}\n" if first.document != last else ""
        last = first.document
        links = ", ".join(each.link for each in shown)
        page += f"\n![{first.caption}](docs/pictures/{picture})\n\n*{first.caption}* ({links})\n"
    return page


def anchor(heading: str) -> str:
    """The anchor that mdbook gives to a heading, if it is the first of its words on the page."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text))


def without_code(text: str) -> str:
    """A page without its blocks of code."""
    return CODE.sub("", text)


def in_site(name: str) -> str:
    """The name of a page in the site, where the first page of a directory is its index."""
    return str(Path(name).with_name("index.md")) if Path(name).name == "README.md" else name


def with_links(text: str) -> str:
    """A page with the links of the site."""
    parts = CODE.split(text)
    parts[::2] = [LINK.sub(lambda link: link[0] if ":" in link[0] else in_site(link[0]), part) for part in parts[::2]]
    return "".join(parts)


def copy(names: list[str], source: Path) -> None:
    """Copies files of the repository, and all files that they link."""
    while names:
        name = names.pop()
        to = source / in_site(name)
        if to.exists():
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        if not name.endswith(".md"):
            shutil.copyfile(TOP / name, to)
            continue
        text = (TOP / name).read_text(encoding="utf-8")
        to.write_text(with_links(text), encoding="utf-8")
        linked = [os.path.normpath(Path(name).parent / each) for each in LINK.findall(without_code(text))]
        names += [each for each in linked if (TOP / each).is_file()]


def write_sources(iosonar: str, book: Path) -> None:
    """Writes the sources of the book."""
    source = book / "src"
    source.mkdir(parents=True)
    copy(documents(), source)
    summary = ["# Summary", "", "[iosonar](index.md)"]
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
    summary += [
        "",
        "---",
        "",
        "[Gallery](gallery.md)",
        *(f"[{name}]({in_site(file)})" for file, name in OTHERS.items()),
        "",
    ]
    (source / "SUMMARY.md").write_text("\n".join(summary), encoding="utf-8")
    (book / "book.toml").write_text(BOOK, encoding="utf-8")
    (book / "site.css").write_text(STYLE, encoding="utf-8")


def main(iosonar: str, mdbook: str, out: Path) -> None:
    """Writes the sources of the book, then the site, and checks its links."""
    shutil.rmtree(out, ignore_errors=True)
    write_sources(iosonar, out / "book")
    subprocess.run([mdbook, "build", str(out / "book"), "--dest-dir", str((out / "html").resolve())], check=True)
    if found := faults((out / "html").resolve()):
        sys.exit("\n".join(found))
    print(out / "html/index.html")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
