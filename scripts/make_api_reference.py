#!/usr/bin/env python3
"""Writes docs/api.md, the reference of the C API, from the public headers: sections, declarations and comments.

    make_api_reference.py [FOLDER_OF_HEADERS [OUTPUT]]
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ROOT / "include/graphbench"
NAMES = ["graphbench.h", "graphbench_tools.h", "graphbench_ocl.h"]
OUTPUT = ROOT / "docs/api.md"

TITLE = """# API reference

Written from [graphbench.h](../include/graphbench/graphbench.h), [graphbench_tools.h](../include/graphbench/graphbench_tools.h) and
[graphbench_ocl.h](../include/graphbench/graphbench_ocl.h) by `scripts/make_api_reference.py`; a test holds it to the headers.
[embedding.md](embedding.md) shows how the parts go together.
"""

COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
SECTION = re.compile(r"/\* ---- (.*?) ---- \*/")
FUNCTION = re.compile(r"\b(gb_\w+)\(")
TYPE = re.compile(r"^(?:typedef (?:enum|struct) (gb_\w+)|typedef .*\(\*(gb_\w+)\))")
NAME = re.compile(r"(?<!`)\b(gb_\w+(?:\(\))?|GB_[A-Z0-9_]+)(?![\w`])")


def comment_lines(comment):
    """The text of a comment without its frame."""
    lines = [re.sub(r"^ ?\* ?", "", line) for line in comment.split("\n")]
    lines[0] = lines[0].strip()
    return [line.rstrip() for line in lines]


def prose(comment):
    """A comment as Markdown: names as code, indented lines as a block, hyphens as a list."""
    blocks, kind = [], None
    for line in comment_lines(comment):
        is_item = re.match(r"\s*- ", line)
        if not line.strip():
            kind = None
            continue
        if line.startswith("    ") and kind not in ("item",):
            now = "code"
        elif is_item:
            now = "item"
        elif kind == "item" and line.startswith(" "):
            now = "item"
        else:
            now = "text"
        if now != kind or is_item:
            blocks.append((now, []))
        kind = now
        blocks[-1][1].append(line)
    out = []
    for kind, lines in blocks:
        if kind == "code":
            out.append("```\n" + "\n".join(line[4:] for line in lines) + "\n```")
        else:
            text = NAME.sub(r"`\1`", " ".join(line.strip() for line in lines))
            glued = kind == "item" and out and out[-1].startswith("- ")
            if glued:
                out[-1] += "\n" + text
            else:
                out.append(text)
    return "\n\n".join(out)


def chunks(section):
    """Comments and declarations of a section, in order: ("comment" | "code" | "gap", text)."""
    at = 0
    while at < len(section):
        rest = section[at:]
        if rest[0] == "\n":
            yield "gap", "\n"
            at += 1
        elif rest.startswith("/*"):
            end = rest.index("*/") + 2
            yield "comment", rest[2 : end - 2]
            at += end + 1
        elif rest[0] == "#":
            end = re.search(r"(?<!\\)\n", rest).end()
            yield "code", rest[:end].rstrip()
            at += end
        else:
            end = declaration_end(rest)
            yield "code", rest[:end].rstrip()
            at += end + 1


def declaration_end(text):
    """Behind the semicolon that ends the declaration, and the comment on its line."""
    bare = COMMENT.sub(lambda match: " " * len(match.group()), text)
    depth = 0
    for i, c in enumerate(bare):
        depth += (c == "{") - (c == "}")
        if c == ";" and depth == 0:
            return text.index("\n", i) if "\n" in text[i:] else len(text)
    raise SystemExit(f"no end of a declaration: {text[:60]!r}")


def names_of(code):
    found = TYPE.match(code)
    if found:
        return [found.group(1) or found.group(2)]
    if code.startswith("GB_API"):
        return FUNCTION.findall(code)[:1]
    return re.findall(r"^#define (GB_\w+)|(?<=^typedef struct )gb_\w+", code)


def entries(section):
    """Groups (text, declarations): a comment with the declarations below it, up to the next comment or gap."""
    text, codes = None, []
    for kind, content in chunks(section):
        if kind == "code":
            codes.append(content)
            continue
        if codes or (kind == "gap" and text is not None):
            yield text, codes
            text, codes = None, []
        if kind == "comment":
            if text is not None:
                yield text, []
            text = content
    if codes or text is not None:
        yield text, codes


def write_section(title, section, out, index):
    out.append(f"## {title[0].upper()}{title[1:]}")
    for text, codes in entries(section):
        anchors = []
        for code in codes:
            for name in names_of(code):
                if name and code.startswith(("GB_API", "typedef")):
                    anchors.append(f'<a id="{name}"></a>')
                    index.append(name)
        if codes:
            body = "\n".join(re.sub(r"^GB_API ", "", code) for code in codes)
            out.append("".join(anchors) + ("\n\n" if anchors else "") + f"```c\n{body}\n```")
        if text is not None:
            out.append(prose(text))


def sections_of(source):
    """Titles and texts: the constants at the start, if there are some, then what the header names."""
    parts = SECTION.split(source)
    at = parts[0].find("#define GB_VERSION_MAJOR")
    constants = [("constants", parts[0][at:])] if at >= 0 else []
    return constants + list(zip(parts[1::2], parts[2::2]))


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HEADERS
    output = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else OUTPUT
    out, index = [], []
    for name in NAMES:
        source = (folder / name).read_text()
        if name != NAMES[0]:
            out.append(f"# {name}")
        out.append(prose(COMMENT.search(source).group(1)))
        for title, section in sections_of(source):
            section = section.split("#ifdef __cplusplus")[0]
            write_section(title, section.strip("\n") + "\n", out, index)
    links = ", ".join(f"[{name}](#{name})" for name in sorted(index))
    text = [TITLE.rstrip(), out[0], f"All names: {links}."] + out[1:]
    output.write_text("\n\n".join(text) + "\n")


if __name__ == "__main__":
    main()
