#!/usr/bin/env python3
"""The result that README.md shows: a table (Markdown, on the standard output) and a roofline plot (SVG) of a report.

    graph-bench --mode=CP --batch=demo --json=demo.json
    scripts/make_picture.py demo.json docs/demo.svg [CASE...]

A case with several partitions is a row and a point of its sums. Of the cases named only these are shown (shell patterns)."""
import fnmatch
import json
import math
import sys

W, H, LEFT, RIGHT, TOP, BOTTOM = 720, 330, 62, 12, 12, 44
STYLE = '''text{font:12px system-ui,sans-serif;fill:#62707c}.name{font-size:11px;fill:#1c2024}.grid{stroke:#d8dee4}
.roof{stroke:#2f6fbd;fill:none;stroke-width:2}circle{fill:#2f6fbd}
@media(prefers-color-scheme:dark){text{fill:#97a3ae}.name{fill:#e4e8ec}.grid{stroke:#343b41}.roof{stroke:#79b0f0}circle{fill:#79b0f0}}'''


def rows_of(report):
    for case in report['cases']:
        parts = [part for part in case['partitions'] if part['median_ns']]
        if not parts:
            continue
        ns, flops, bytes_ = (sum(part[key] or 0 for part in parts) for key in ('median_ns', 'flops', 'bytes'))
        margins = [part['margin'] for part in parts if part['margin'] is not None]
        name = case['file'].rsplit('.', 1)[0] + (' (bf16)' if '--dt=bf16' in case['repro'] else '')
        fused = parts[0]['ops'].replace('+', ' + ') if len(parts) == 1 else '%d partitions' % len(parts)
        yield {'name': name, 'status': case['status'], 'ops': fused, 'ns': ns, 'flops': flops, 'bytes': bytes_,
               'margin': max(margins, default=None)}


def time_of(ns):
    return '%.3g ms' % (ns / 1e6) if ns >= 1e6 else '%.3g µs' % (ns / 1e3)


def write_table(rows, peak, bandwidth):
    print('| | graph | runs as | verdict: largest error / bound | time | GFLOP/s | GB/s | of the roof |')
    print('|--:|:--|:--|:--|--:|--:|--:|--:|')
    for number, row in enumerate(rows, 1):
        roof = min(peak, bandwidth * row['flops'] / row['bytes'])
        print('| %d | `%s` | %s | %s%s | %s | %.3g | %.3g | %.0f %% |' % (
            number, row['name'], row['ops'], row['status'], '' if row['margin'] is None else ': %.2g' % row['margin'], time_of(row['ns']),
            row['flops'] / row['ns'], row['bytes'] / row['ns'], 100 * row['flops'] / row['ns'] * 1e9 / roof))


def svg_of(rows, peak, bandwidth):
    points = [(row['flops'] / row['bytes'], row['flops'] / row['ns'] * 1e9, str(number)) for number, row in enumerate(rows, 1) if row['flops']]
    xs, ys = [p[0] for p in points] + [peak / bandwidth], [p[1] for p in points] + [peak]
    x0, x1, y0, y1 = (f(math.log10(v)) for f, v in ((math.floor, min(xs)), (math.ceil, max(xs)), (math.floor, min(ys)), (float, max(ys) * 1.5)))

    def x(v):
        return LEFT + (math.log10(v) - x0) / (x1 - x0) * (W - LEFT - RIGHT)

    def y(v):
        return H - BOTTOM - (math.log10(v) - y0) / (y1 - y0) * (H - TOP - BOTTOM)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Roofline plot">' % (W, H),
           '<style>%s</style>' % STYLE]
    for e in range(x0, x1 + 1):
        out.append('<path class="grid" d="M%.1f %dV%d"/>' % (x(10 ** e), TOP, H - BOTTOM))
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%g</text>' % (x(10 ** e), H - BOTTOM + 16, 10 ** e))
    for e in range(y0, math.floor(y1) + 1):
        out.append('<path class="grid" d="M%d %.1fH%d"/>' % (LEFT, y(10 ** e), W - RIGHT))
        out.append('<text x="%d" y="%.1f" text-anchor="end">%g</text>' % (LEFT - 6, y(10 ** e) + 4, 10 ** (e - 9)))
    out.append('<text x="%d" y="%d" text-anchor="middle">operations per byte</text>' % ((LEFT + W) / 2, H - 8))
    out.append('<text x="14" y="%d" transform="rotate(-90 14 %d)" text-anchor="middle">GFLOP/s</text>' % (H / 2, H / 2))
    foot = max(10 ** x0, 10 ** y0 / bandwidth)
    out.append('<path class="roof" d="M%.1f %.1fL%.1f %.1fH%d"/>' % (x(foot), y(foot * bandwidth), x(peak / bandwidth), y(peak), W - RIGHT))
    taken = [(x(px) - 4, y(py) + 4) for px, py, _ in points]
    for px, py, number in points:
        cx, cy, wide = x(px), y(py), 7 * len(number)
        places = [(cx + 7, cy + 4), (cx - 7 - wide, cy + 4), (cx - wide / 2, cy - 8), (cx - wide / 2, cy + 17)]
        place = next((p for p in places if all(abs(p[0] - tx) > wide + 2 or abs(p[1] - ty) > 10 for tx, ty in taken)), places[0])
        taken.append(place)
        out.append('<circle cx="%.1f" cy="%.1f" r="4"/><text class="name" x="%.1f" y="%.1f">%s</text>' % (cx, cy, *place, number))
    return '\n'.join(out) + '\n</svg>\n'


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        report = json.load(file)
    peak, bandwidth = report['environment']['roof_flops'], report['environment']['roof_bytes_per_second']
    rows = [row for row in rows_of(report) if not sys.argv[3:] or any(fnmatch.fnmatch(row['name'], word) for word in sys.argv[3:])]
    write_table(rows, peak, bandwidth)
    with open(sys.argv[2], 'w', encoding='utf-8') as file:
        file.write(svg_of(rows, peak, bandwidth))


main()
