#!/usr/bin/env python3
"""Writes the dumps of docs/walkthrough.md: the code block behind each mark is what graph-bench prints today.

    scripts/make_walkthrough.py GRAPH_BENCH [--check]

<!-- file --> is the graph, <!-- pass NAME --> the graph after a pass, <!-- program --> its program without the
lines on scratch, <!-- partition --> the line of the partition without times.
With --check nothing is written; the exit status is 1 when the page is not what would be written."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, 'docs', 'walkthrough.md')
GRAPH = os.path.join(ROOT, 'inputs', 'graph', 'text', 'projection.gbt')


def dumps(program):
    """The blocks by their marks."""
    environment = dict(os.environ, GB_MAX_ISA='avx2', GB_CACHES='32768:524288:33554432', OMP_NUM_THREADS='2')
    environment.pop('GB_VERBOSE', None)
    run = subprocess.run([program, '--mode=C', '-v1', '--print=passes+program', '--case=' + GRAPH],
                         env=environment, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stdout + run.stderr)
    blocks = {'file': open(GRAPH, encoding='utf-8').read()}
    for name, text in re.findall(r'^# after pass "(\w+)"\n(.*?)(?=^# after pass|^# program:|\Z)', run.stderr, re.M | re.S):
        blocks['pass ' + name] = text
    program_text = re.search(r'^# program:.*', run.stderr, re.M | re.S).group(0)
    blocks['program'] = re.sub(r'^    scratch .*\n', '', program_text, flags=re.M)
    line = next(line for line in run.stdout.split('\n') if line.startswith('partition '))
    line = re.sub(r'^partition \d+: ', '', line)
    fields = [field for field in line.split('; ') if not re.match(r'compile|first|margin|median|minimum|scratch', field)]
    blocks['partition'] = '\n'.join(re.sub(r':(baseline|avx2|avx512|amx)$', '', field) for field in fields) + '\n'
    return blocks


def fill_in(page, blocks):
    def one(match):
        return match.group(1) + blocks[match.group(2)] + '```\n'

    return re.sub(r'(<!-- ([\w ]+) -->\n```\n)[^`]*```\n', one, page)


def main():
    program = sys.argv[1]
    old = open(PAGE, encoding='utf-8').read()
    new = fill_in(old, dumps(program))
    if '--check' in sys.argv[2:]:
        if new != old:
            print('docs/walkthrough.md is not what the library prints; run scripts/make_walkthrough.py ' + program)
        return new != old
    with open(PAGE, 'w', encoding='utf-8') as file:
        file.write(new)
    return 0


sys.exit(main())
