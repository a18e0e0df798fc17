#!/usr/bin/env python3
"""Writes the graphs of fusion families, inputs/graph/pattern and inputs/graph/complex_fusion, and their batch files.

    make_fusions.py [OUTPUT]

The graphs are described in graphs_*.py beside this file; OUTPUT (default inputs/graph of the project) gets, for each of the
two folders, one JSON file per graph and the batch files `ci` (f32 and bf16), `more` (f16 and the further options of each
graph) and `all` (both). Only needed when a graph is added or changed: the files are part of the project.
"""
import os
import sys

import graphs_attention  # noqa: F401 (the lists register their graphs)
import graphs_elementwise  # noqa: F401
import graphs_linear  # noqa: F401
import graphs_quantized  # noqa: F401
from graph_words import REGISTRY, build
from graph_writer import INPUTS, compact, write

TITLES = {
    'pattern': 'One graph for each kind of fusion around one anchor.',
    'complex_fusion': 'One graph for each kind of fusion of several anchors.',
}


def line(row, *words):
    count = [f'--expected-n-partitions={row["partitions"]}'] if row['partitions'] != 1 else []
    return ' '.join(['--reset', *words, *count, f'--case={row["folder"]}/{row["name"]}.json'])


def types_word(types):
    return [f'--dt={",".join(types)}'] if types else []


def retyped(tensors, types):
    """--dt for those of the tensors that have a type of the map, or nothing."""
    found = {t['id']: types[t['dtype']] for t in tensors if t['dtype'] in types}
    return ['--dt=' + '+'.join(f'{tensor}:{dtype}' for tensor, dtype in found.items())] if found else []


def type_options(row, g):
    """In quantised graphs: the other type of integers for the results, and f16 for bf16."""
    if not row['name'].startswith('int8'):
        return []
    everything = [t for op in g.ops for t in op['inputs'] + op['outputs']]
    read = {t['id'] for op in g.ops for t in op['inputs']}
    results = [t for t in everything if t['id'] not in read]
    return retyped(results, {'u8': 's8', 's8': 'u8'}) + retyped(everything, {'bf16': 'f16'})


def batches(folder, rows):
    """The texts of the batch files of a folder by name."""
    ci = [line(row, *types_word(row['types'][:2])) for row, _ in rows if row['ci']]
    more = []
    for row, g in rows:
        types = row['types'][2:] if row['ci'] else row['types']
        if types or not row['ci']:
            more.append(line(row, *types_word(types)))
        more += [line(row, *option.split()) for option in type_options(row, g) + g.options]
    made = 'Written by scripts/make_fusions.py.\n'
    return {'ci': f'# {TITLES[folder]} {made}' + '\n'.join(ci) + '\n',
            'more': f'# What ci leaves out: f16, and further types, shapes and layouts. {made}' + '\n'.join(more) + '\n',
            'all': f'# Everything. {made}--batch={folder}/ci\n--batch={folder}/more\n'}


def main():
    output = sys.argv[1] if len(sys.argv) > 1 else INPUTS
    for folder in TITLES:
        rows = [(row, build(row)) for row in REGISTRY if row['folder'] == folder]
        for row, g in rows:
            write(os.path.join(output, folder, row['name'] + '.json'), compact(g.document()))
        for name, text in batches(folder, rows).items():
            write(os.path.join(output, folder, name), text)


if __name__ == '__main__':
    main()
