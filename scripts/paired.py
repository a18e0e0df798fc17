"""Ratios of times that were taken in turn: their median, what is known of it, and means over cases. Standard library only."""
import math
import random

CONFIDENCE = 0.95
DRAWS = 2000
FEWEST_FOR_BOOTSTRAP = 6


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
