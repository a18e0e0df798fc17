"""Ratios of times that were taken in turn: their median, what is known of it, means over cases, and a plot. Standard library only."""
import html
import math
import random

CONFIDENCE = 0.95
DRAWS = 2000
FEWEST_FOR_BOOTSTRAP = 6

STYLE = '''text{font:12px system-ui,sans-serif;fill:#1c2024}.dim{fill:#62707c}.grid{stroke:#d8dee4}.even{stroke:#62707c}
.s0{stroke:#2f6fbd;fill:#2f6fbd}.s1{stroke:#b35c00;fill:#b35c00}.s2{stroke:#2e8540;fill:#2e8540}
@media(prefers-color-scheme:dark){text{fill:#e4e8ec}.dim{fill:#97a3ae}.grid{stroke:#343b41}.even{stroke:#97a3ae}
.s0{stroke:#79b0f0;fill:#79b0f0}.s1{stroke:#f0a060;fill:#f0a060}.s2{stroke:#7fd08f;fill:#7fd08f}}'''
WIDTH, NAMES, ROW, TOP = 860, 360, 20, 44


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def interval(draws):
    draws = sorted(draws)
    cut = int(len(draws) * (1 - CONFIDENCE) / 2)
    return draws[cut], draws[-1 - cut]


def ratio(logs, chance=None):
    """(median, low, high) of ratios given as logarithms: a bootstrap interval, or all of their range where there are few."""
    middle = math.exp(median(logs))
    if len(logs) < FEWEST_FOR_BOOTSTRAP:
        return middle, math.exp(min(logs)), math.exp(max(logs))
    chance = chance or random.Random(1)
    low, high = interval([median(chance.choices(logs, k=len(logs))) for _ in range(DRAWS)])
    return middle, math.exp(low), math.exp(high)


def geometric_mean(cases):
    """(mean, low, high) over cases, each a list of logarithms: their rounds are drawn anew."""
    chance = random.Random(1)
    mean = sum(median(logs) for logs in cases) / len(cases)
    low, high = interval([sum(median(chance.choices(logs, k=len(logs))) for logs in cases) / len(cases) for _ in range(DRAWS)])
    return math.exp(mean), math.exp(min(low, mean)), math.exp(max(high, mean))


def text(found):
    middle, low, high = found
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def plot(path, series, rows):
    """Ratios as an SVG: a line for each row, a point with its interval for each of the series' names in it, on a logarithmic axis.
    `rows` are (name, {name of a series: (median, low, high)})."""
    values = [value for _, found in rows for ratios in found.values() for value in ratios]
    low, high = math.log(min(0.8, *values)), math.log(max(1.25, *values))
    height = TOP + ROW * len(rows) + 8

    def x(value):
        return NAMES + (math.log(value) - low) / (high - low) * (WIDTH - NAMES - 16)

    ticks = [value for power in range(-4, 5) for value in (10.0 ** power, 2 * 10.0 ** power, 5 * 10.0 ** power) if low <= math.log(value) <= high]
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"><style>{STYLE}</style>']
    for value in ticks:
        lines.append(f'<line class="{"even" if value == 1 else "grid"}" x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{TOP - 8}" y2="{height}"/>'
                     f'<text class="dim" text-anchor="middle" x="{x(value):.1f}" y="{TOP - 14}">{value:g}</text>')
    for at, name in enumerate(series):
        lines.append(f'<circle class="s{at % 3}" cx="{NAMES + 150 * at + 6}" cy="12" r="4"/>'
                     f'<text x="{NAMES + 150 * at + 16}" y="16">{html.escape(name)} / ours</text>')
    for number, (name, found) in enumerate(rows):
        middle = TOP + ROW * number + ROW / 2
        short = name if len(name) < 48 else name[:22] + "…" + name[-24:]
        lines.append(f'<text text-anchor="end" x="{NAMES - 12}" y="{middle + 4:.1f}">{html.escape(short)}<title>{html.escape(name)}</title></text>')
        for at, one in enumerate(series):
            if one in found:
                y, (ratio_, from_, to) = middle + 4 * (at - (len(series) - 1) / 2), found[one]
                lines.append(f'<line class="s{at % 3}" x1="{x(from_):.1f}" x2="{x(to):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
                             f'<circle class="s{at % 3}" cx="{x(ratio_):.1f}" cy="{y:.1f}" r="3"><title>{text(found[one])}</title></circle>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n</svg>\n")
