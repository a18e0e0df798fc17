#!/usr/bin/env python3
"""The house rules of README.md and docs/*.md: lines of at most 120 characters outside of tables and code, and every relative
link and every path that a page names exists. Pages that scripts write are held to links and paths only."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WRITTEN = {'docs/api.md', 'docs/ops.md'}
MOST = 120
TOP = 'lib|cli|bridge|docs|scripts|tests|include|inputs|bench|examples|cmake|python'
PATH = re.compile(r'(?<![\w./<-])((?:' + TOP + r')/[\w.*{},/-]*[\w*}/])(?![\w<>])')
SOURCE = re.compile(r'`([\w*][\w./*-]*\.(?:c|h|hpp|def|py|sh|gbt|isa\.c))`')
LINK = re.compile(r'\]\(([^)\s]+)\)')


def anchors(path):
    """Of the headings of a page, as web sites make them."""
    found = set()
    for line in open(path, encoding='utf-8'):
        found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
        if line.startswith('#'):
            text = re.sub(r'[`*]', '', line.lstrip('#').strip()).lower()
            found.add(re.sub(r'[^\w\- ]', '', text).replace(' ', '-'))
    return found


def exists(path, folder):
    """As a path of the project, below lib, or beside the page, or a program by its source; braces and stars as in a shell."""
    braces = re.match(r'(.*)\{([^}]*)\}(.*)', path)
    if braces:
        return all(exists(braces[1] + word + braces[3], folder) for word in braces[2].split(','))
    places = [ROOT, os.path.join(ROOT, 'lib'), os.path.join(ROOT, folder)]
    return any(glob.glob(os.path.join(place, path + end)) for place in places for end in ('', '.c'))


def named(name):
    """A file of this name or path end lies somewhere in the project."""
    return any(glob.glob(os.path.join(ROOT, top, '**', name), recursive=True) for top in TOP.split('|'))


def check(page):
    faults = []
    folder = os.path.dirname(page)
    in_code = False
    for number, line in enumerate(open(os.path.join(ROOT, page), encoding='utf-8'), 1):
        line = line.rstrip('\n')
        if line.startswith('```'):
            in_code = not in_code
        if in_code or line.startswith('```'):
            continue
        if len(line) > MOST and not line.startswith('|') and page not in WRITTEN:
            faults.append((number, '%d characters' % len(line)))
        for link in LINK.findall(line):
            if re.match(r'\w+:', link):
                continue
            path, _, anchor = link.partition('#')
            target = os.path.join(ROOT, folder, path) if path else os.path.join(ROOT, page)
            if not os.path.exists(target):
                faults.append((number, 'no file at link ' + link))
            elif anchor and target.endswith('.md') and anchor not in anchors(target):
                faults.append((number, 'no heading at link ' + link))
        text = LINK.sub('', line)
        for path in PATH.findall(text):
            if not re.search(r'NAME|KIND|FILE|FAMILY', path) and not exists(path, folder):
                faults.append((number, 'no such path: ' + path))
        for path in SOURCE.findall(text):
            if not re.search(r'NAME|KIND|FILE|FAMILY', path) and not re.match(TOP, path) and not named(path):
                faults.append((number, 'no such file: ' + path))
    for number, fault in faults:
        print('%s:%d: %s' % (page, number, fault))
    return len(faults)


pages = ['README.md'] + sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, 'docs', '*.md')))
sys.exit(sum(check(page) for page in pages) > 0)
