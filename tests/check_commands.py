#!/usr/bin/env python3
"""The commands of README.md and docs/*.md do what they are shown to do: each block of shell commands is run in an empty folder, with
graph-bench in the place of scripts/run.sh and build/release/graph-bench, and short budgets; each block that is a file with a graph is
checked. A comment `<!-- not run: REASON -->` above a block leaves it out, aloud. Usage: check_commands.py GRAPH_BENCH"""
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BETWEEN_PASSES = 'docs/walkthrough.md'  # its graphs are those of the compiler, not files
BLOCK = re.compile(r'(?:<!-- not run: (.*?) -->\n+)?```(\w*)\n(.*?)\n```', re.S)


def run_block(text, program, folder):
    for name in ('inputs', 'docs', 'examples'):
        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    os.mkdir(os.path.join(folder, 'bin'))
    os.symlink(program, os.path.join(folder, 'bin', 'graph-bench'))
    text = re.sub(r'scripts/run\.sh|build/release/graph-bench', 'graph-bench', text)
    text = text.replace('--mode=P ', '--max-ms-per-prb=10 --mode=P ').replace('--mode=CP ', '--max-ms-per-prb=10 --mode=CP ')
    env = dict(os.environ, PATH=os.path.join(folder, 'bin') + ':' + os.environ['PATH'],
               GRAPHBENCH_INPUT_DIR=os.path.join(ROOT, 'inputs', 'graph'))
    return subprocess.run(['bash', '-euo', 'pipefail', '-c', text], cwd=folder, env=env, capture_output=True, text=True)


def check(page, program):
    faults = 0
    text = open(os.path.join(ROOT, page), encoding='utf-8').read()
    for left_out, language, block in BLOCK.findall(text):
        is_graph = re.match(r'(#.*\n)*graph \w+=', block) and page != BETWEEN_PASSES
        if language != 'sh' and not is_graph:
            continue
        line = text[:text.index(block)].count('\n') + 1
        if left_out:
            print('%s:%d: not run: %s' % (page, line, left_out))
            continue
        with tempfile.TemporaryDirectory() as folder:
            if is_graph:
                with open(os.path.join(folder, 'graph.gbt'), 'w', encoding='utf-8') as file:
                    file.write(block + '\n')
                block = 'graph-bench --mode=C --expected-n-partitions=0 --case=./graph.gbt'
            result = run_block(block, program, folder)
        if result.returncode != 0:
            faults += 1
            print('%s:%d: exit status %d\n%s%s' % (page, line, result.returncode, result.stdout[-500:], result.stderr[-1000:]))
    return faults


def main():
    program = os.path.abspath(sys.argv[1])
    pages = ['README.md'] + sorted('docs/' + os.path.basename(path) for path in glob.glob(os.path.join(ROOT, 'docs', '*.md')))
    sys.exit(1 if sum(check(page, program) for page in pages) else 0)


main()
