#!/usr/bin/env python3
"""Plants faults one at a time and tells which of them the tool's own batches find.

Each row of a catalogue (tests/mutants/faults.tsv) is a fault: id, family, ISA level that its code needs ("any" where it runs
everywhere), file, text that stands in the file exactly once, what takes its place, the step that is expected to find it ("ci"
or "all"; "none:REASON" where no defined result changes). "\\n" and "\\t" stand for line ends and tabs.

Faults are planted in copies of the tracked files, so the working tree stays as it is; --jobs of them, a fault in each. Only
graph-bench is built there, without what it can do without, and kernels for the instruction sets that run. A fault is killed
by a compiler error, a failed case, a crash or a run of more than ten times the usual time; the first failure is enough. First
come the cases that found this fault before (tests/mutants/killers.tsv, which --write-killers brings up to date), then those
that found others in the same file and family, then whole batches. A row that was judged with this code and these graphs is not judged again (build/mutants/results.json), so a catalogue can be
run in pieces (--minutes). Of survivors it is told whether a case executes their code at all (--coverage: a build with gcov).
"""
import argparse
import collections
import csv
import filecmp
import hashlib
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CATALOGUE = os.path.join(ROOT, "tests", "mutants")
FIELDS = ("id", "family", "isa", "file", "search", "replacement", "expected")
STEPS = {"ci": ["--batch=ci"], "all": ["--batch=all"]}
# Beside the step: a failure needs no explanation, a hang ends soon.
COMMON = ["--mode=C", "--blame=off", "--case-timeout=180s", "--case-memory=8G"]
PROCESSORS = os.cpu_count() or 1
# What a case that found a fault may have set, and later ones must not keep.
DEFAULTS = "--isa=machine --caches=machine --bf16-products= --policy= --threads= --fill= --dynamic= --layouts= --ref= --seed= --reset"
# What decides whether a fault is found.
JUDGED = ("lib/", "cli/", "include/", "cmake/", "inputs/", "CMakeLists.txt")
LEVELS = {"any": (), "avx2": ("avx2", "fma", "f16c"), "avx512": ("avx512f", "avx512bw", "avx512vl", "avx512dq"),
          "bf16": ("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_bf16"),
          "amx": ("amx_tile", "amx_int8", "amx_bf16", "avx512_vnni", "avx512_bf16")}


def unescape(text):
    return text.replace("\\n", "\n").replace("\\t", "\t")


def read_catalogue(paths):
    rows, seen = [], set()
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            for number, line in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 1):
                if not line or line[0].startswith("#"):
                    continue
                if len(line) != len(FIELDS):
                    sys.exit(f"{path}:{number}: {len(line)} fields, expected {len(FIELDS)}")
                row = dict(zip(FIELDS, line))
                row["place"] = f"{path}:{number}"
                row["search"], row["replacement"] = unescape(row["search"]), unescape(row["replacement"])
                if row["id"] in seen:
                    sys.exit(f"{row['place']}: id {row['id']} is there twice")
                if row["isa"] not in LEVELS:
                    sys.exit(f"{row['place']}: no ISA level {row['isa']}")
                seen.add(row["id"])
                rows.append(row)
    return rows


def check_rows(rows, root):
    """Every text must stand exactly once, so that a row cannot come to mean another place."""
    faults = 0
    for row in rows:
        path = os.path.join(root, row["file"])
        count = open(path, encoding="utf-8").read().count(row["search"]) if os.path.exists(path) else 0
        if count != 1 or row["search"] == row["replacement"]:
            print(f"{row['place']}: {row['id']}: the text stands {count} times in {row['file']}", file=sys.stderr)
            faults += 1
    if faults:
        sys.exit(f"{faults} rows do not fit the code")


def machine_levels():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        flags = set(re.search(r"^flags\s*:(.*)$", file.read(), re.M).group(1).split())
    return {level for level, needed in LEVELS.items() if flags.issuperset(needed)}


def copy_changed(origin, target):
    """What is as it was keeps its time, so that it is not built again."""
    if not os.path.isfile(origin) or (os.path.exists(target) and filecmp.cmp(origin, target, shallow=False)):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy(origin, target)


def tracked_files():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    return [name for name in listed.decode().split("\0") if os.path.isfile(os.path.join(ROOT, name))]


def state_of(names):
    """A number for all that decides whether a fault is found."""
    digest = hashlib.sha256()
    for name in sorted(names):
        if name.startswith(JUDGED):
            with open(os.path.join(ROOT, name), "rb") as file:
                digest.update(f"{name}\0".encode() + hashlib.sha256(file.read()).digest())
    return digest.hexdigest()[:16]


class Killers:
    """Cases that found faults, by the id of the row: (step, arguments). The file outlives builds."""

    def __init__(self, path):
        self.path, self.cases = path, {}
        if os.path.exists(path):
            with open(path, encoding="utf-8", newline="") as file:
                self.cases = {line[0]: (line[1], line[2]) for line in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}

    def write(self, ids):
        """Of these rows, in their order."""
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines("\t".join((name, *self.cases[name])) + "\n" for name in ids if name in self.cases)


class Results:
    """What became of rows, kept in a file: by id, with the state of the code and the text of the row. Threads may share one."""

    def __init__(self, path, state, killers):
        self.path, self.state, self.lock, self.known_killers = path, state, threading.Lock(), killers
        self.rows, self.clean = {}, {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
            self.rows, self.clean = kept["rows"], kept["clean"]
        for name, row in self.rows.items():
            self.learn(name, row["step"], row["killer"])

    def save(self):
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump({"rows": self.rows, "clean": self.clean}, file, indent=1)
        os.replace(self.path + ".new", self.path)

    def text(self, row):
        return hashlib.sha256("\0".join(row[f] for f in ("file", "search", "replacement")).encode()).hexdigest()[:16]

    def known(self, row, steps):
        """(step, killer) of a row that was judged in this state, else None."""
        kept = self.rows.get(row["id"])
        if not kept or kept["state"] != self.state or kept["text"] != self.text(row):
            return None
        return (kept["step"], kept["killer"]) if kept["step"] or set(steps) <= set(kept["steps"]) else None

    def learn(self, name, step, killer):
        if step and "--case=" in killer:
            self.known_killers.cases[name] = (step, killer)

    def add(self, row, steps, step, killer):
        with self.lock:
            self.learn(row["id"], step, killer)
            self.rows[row["id"]] = {"file": row["file"], "family": row["family"], "state": self.state, "text": self.text(row),
                                    "steps": steps, "step": step, "killer": killer, "time": time.time()}
            self.save()

    def killers(self, row, steps, rows, most=40):
        """Cases that may find the fault, as (step, arguments), the likeliest first: those of other rows, too."""
        with self.lock:
            cases = dict(self.known_killers.cases)
        ranked = collections.Counter()
        for other in rows:
            step, killer = cases.get(other["id"], (None, None))
            weight = 1000 * (other["id"] == row["id"]) + 30 * (other["file"] == row["file"]) + (other["family"] == row["family"])
            if weight and step in steps:
                ranked[(step, killer)] += weight
        return [k for k, _ in ranked.most_common(most)]


class Build:
    """A copy of the tracked files and a build of graph-bench there, which runs with so many workers."""

    def __init__(self, folder, flags="", workers=PROCESSORS):
        self.source, self.build, self.workers = folder, os.path.join(folder, "build", "release"), workers
        os.makedirs(self.source, exist_ok=True)
        launcher = os.path.join("scripts", "mutants_compile.sh")  # what it leaves empty is not compiled again
        if not os.path.exists(os.path.join(folder, launcher)) or not filecmp.cmp(os.path.join(ROOT, launcher), os.path.join(folder, launcher)):
            shutil.rmtree(self.build, ignore_errors=True)
        for name in tracked_files():
            copy_changed(os.path.join(ROOT, name), os.path.join(self.source, name))
        level = next(level for level in ("avx512", "avx2", "baseline") if level in machine_levels() | {"baseline"})
        # Copies find each other's objects.
        self.environment = dict(os.environ, CMAKE_GENERATOR="Ninja", MUTANTS_LEVEL=level, CCACHE_BASEDIR=folder, CCACHE_NOHASHDIR="1",
                                CMAKE_C_COMPILER_LAUNCHER=os.path.join(ROOT, "scripts", "mutants_compile.sh"))
        switches = [f"-DGB_{name}=OFF" for name in ("TESTS", "EXAMPLES", "OPENCL", "STATISTICS", "MPI")]
        subprocess.run(["cmake", "--preset", "release", f"-DCMAKE_C_FLAGS={flags}", *switches], cwd=folder, env=self.environment, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not self.make():
            sys.exit("the copy without faults does not build")

    def make(self):
        made = subprocess.run(["cmake", "--build", self.build, "--target", "graph-bench"], env=self.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return made.returncode == 0

    def plant(self, row):
        path = os.path.join(self.source, row["file"])
        text = open(path, encoding="utf-8").read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(row["search"], row["replacement"]))
        return path, text

    def run_cases(self, cases, limit):
        """Runs cases that are given by their arguments: None or what killed the fault."""
        path = os.path.join(self.source, "build", "killers")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{DEFAULTS} {case}\n" for case in cases)
        return self.run([f"--batch={path}"], limit)

    def run(self, what, limit):
        """None: everything passed; else what killed the fault."""
        command = [os.path.join(self.build, "graph-bench"), *COMMON, f"--jobs={self.workers}", f"--input-dir={self.source}/inputs/graph", *what]
        # Threads that spin while they wait take a busy machine's time from those that they wait for.
        environment = {"OMP_WAIT_POLICY": "passive", **os.environ}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
                              start_new_session=True, env=environment) as process:
            late = []
            timer = threading.Timer(limit, lambda: (late.append(True), os.killpg(process.pid, signal.SIGKILL))) if limit else None
            if timer:
                timer.start()
            # The first failure is enough.
            killer = next((line for line in process.stdout if re.match(r"\d+:(?!PASSED|MISTRUSTED|SKIPPED)[A-Z_]+[ (]", line)), None)
            if killer and not late:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if timer:
                timer.cancel()
        if late:
            return "timeout"
        if killer:
            return re.sub(r"--(?:input-dir|case-timeout|case-memory)=\S+ ", "", killer.strip().split("__REPRO: ")[-1])
        return None if process.returncode == 0 else f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"


def executions(step):
    """How often the step executes each line: a build that counts, files with a dict of lines each. By gcov."""
    build = Build(os.path.join(ROOT, "build", "mutants-coverage"), "--coverage -fprofile-update=atomic")
    counted = [os.path.join(folder, name) for folder, _, files in os.walk(build.build) for name in files]
    for name in counted:
        if name.endswith(".gcda"):  # of an earlier run
            os.remove(name)
    build.run(STEPS[step], None)
    counts = collections.defaultdict(dict)
    for name in counted:
        if not name.endswith(".gcno"):
            continue
        text = subprocess.run(["gcov", "--json-format", "--stdout", name], capture_output=True, text=True, cwd=build.build).stdout
        for line in text.splitlines():
            for entry in json.loads(line)["files"]:
                path = os.path.relpath(os.path.normpath(os.path.join(build.build, entry["file"])), build.source)
                for item in entry["lines"]:
                    number = item["line_number"]
                    counts[path][number] = counts[path].get(number, 0) + item["count"]
    return build, counts


def list_unexecuted(step, pattern):
    build, counts = executions(step)
    for path in sorted(path for path in counts if path.startswith("lib/") and re.search(pattern, path)):
        with open(os.path.join(build.source, path), encoding="utf-8") as file:
            text = file.read().splitlines()
        for number, count in sorted(counts[path].items()):
            if not count:
                print(f"{path}:{number}: {text[number - 1]}")


def executed_lines(rows, step):
    """Of each row: is a line of its text executed by the step?"""
    build, counts = executions(step)
    result = {}
    for row in rows:
        text = open(os.path.join(build.source, row["file"]), encoding="utf-8").read()
        first = text[:text.index(row["search"])].count("\n") + 1
        lines = range(first, first + row["search"].count("\n") + 1)
        known = [counts[row["file"]][n] for n in lines if n in counts[row["file"]]]
        result[row["id"]] = any(known) if known else None
    return result


def try_row(build, row, steps, limits, killers=()):
    path, text = build.plant(row)
    try:
        if not build.make():
            return "build", "does not compile"
        if killers:
            killer = build.run_cases([case for _, case in killers], limits[steps[0]])
            if killer:
                return next((step for step, case in killers if case == killer), steps[0]), killer
        for step in steps:
            killer = build.run(STEPS[step], limits[step])
            if killer:
                return step, killer
        return None, None
    finally:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def try_rows(rows, steps, results, jobs, seconds, catalogue):
    """Yields (row, step, killer) of the rows that were tried in that time; the catalogue knows of cases that found others."""
    workers = max(1, PROCESSORS // jobs)
    builds = [Build(os.path.join(ROOT, "build", "mutants", str(i + 1)), workers=workers) for i in range(jobs)]
    limits = {}
    for step in steps:
        key = f"{step} {results.state}"
        if key not in results.clean:
            begin = time.time()
            if builds[0].run(STEPS[step], None):
                sys.exit(f"{step} fails without any fault")
            results.clean[key] = time.time() - begin
        limits[step] = 60 + 10 * results.clean[key]
    waiting, done, begin = list(rows), queue.SimpleQueue(), time.time()

    def work(build):
        try:
            while waiting and not (seconds and time.time() - begin > seconds):
                row = waiting.pop(0)
                done.put((row, *try_row(build, row, steps, limits, results.killers(row, steps, catalogue))))
        finally:
            done.put(None)

    threads = [threading.Thread(target=work, args=(build,)) for build in builds]
    for thread in threads:
        thread.start()
    working = len(threads)
    while working:
        item = done.get()
        if item is None:
            working -= 1
            continue
        results.add(item[0], steps, *item[1:])
        yield item


def summarize(results, skipped):
    families = collections.defaultdict(collections.Counter)
    for row, step, _ in results:
        families[row["family"]]["killed" if step else "excused" if row["expected"].startswith("none") else "survived"] += 1
    print(f"\n{'family':<12} killed survived no-result")
    for family, c in sorted(families.items()):
        print(f"{family:<12} {c['killed']:6} {c['survived']:8} {c['excused']:9}")
    steps = collections.Counter(step or "survived" for _, step, _ in results)
    counted = [r for r in results if not r[0]["expected"].startswith("none")]
    killed = sum(1 for r in counted if r[1])
    print(f"by step: {dict(steps)}; skipped: {len(skipped)}")
    print(f"score: {killed} of {len(counted)}" + (f" ({100 * killed / len(counted):.1f} %)" if counted else ""))
    return len(counted) - killed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalogue", nargs="*", help="default: tests/mutants/faults.tsv")
    parser.add_argument("--check", action="store_true", help="only see whether every row fits the code")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="N rows, spread over the families")
    parser.add_argument("--seed", type=int, default=0, help="of --sample")
    parser.add_argument("--only", default="", metavar="REGEX", help="rows whose id or family fits")
    parser.add_argument("--steps", default="ci", help="ci, or ci,all")
    parser.add_argument("--coverage", action="store_true", help="say of survivors whether a case executes their code")
    parser.add_argument("--unexecuted", metavar="REGEX",
                        help="plant nothing: list the lines of lib/, in files that fit, which no case of the last step executes on this machine")
    parser.add_argument("--jobs", type=int, default=max(1, PROCESSORS // 2), help="copies with a fault at the same time")
    parser.add_argument("--again", action="store_true", help="judge also what was judged with this code and these graphs")
    parser.add_argument("--write-killers", action="store_true", help="keep which cases found the faults, for later runs")
    parser.add_argument("--minutes", type=float, default=0, help="begin no row after so long")
    parser.add_argument("--least", type=float, default=0, metavar="PERCENT", help="fail below this score")
    options = parser.parse_args()
    if options.write_killers and options.catalogue:
        parser.error("--write-killers is for the project's own catalogue")
    catalogue = read_catalogue([os.path.join(CATALOGUE, "faults.tsv"), *options.catalogue])
    rows = [row for row in catalogue if not options.catalogue or row["place"].rsplit(":", 1)[0] in options.catalogue]
    check_rows(rows, ROOT)
    if options.check:
        print(f"{len(rows)} rows fit the code")
        return 0
    if options.unexecuted is not None:
        list_unexecuted(options.steps.split(",")[-1], options.unexecuted)
        return 0
    rows = [r for r in rows if re.search(options.only, r["id"]) or re.search(options.only, r["family"])]
    levels = machine_levels()
    skipped = [r for r in rows if r["isa"] not in levels]
    for row in skipped:
        print(f"skipped {row['id']}: needs {row['isa']}")
    rows = [r for r in rows if r["isa"] in levels]
    if options.sample:
        order = random.Random(options.seed)
        order.shuffle(rows)
        ranks = collections.Counter()
        keyed = []
        for row in rows:
            keyed.append((ranks[row["family"]], len(keyed), row))
            ranks[row["family"]] += 1
        rows = [row for _, _, row in sorted(keyed, key=lambda k: k[:2])[:options.sample]]
    os.makedirs(os.path.join(ROOT, "build", "mutants"), exist_ok=True)
    killers = Killers(os.path.join(CATALOGUE, "killers.tsv"))
    kept = Results(os.path.join(ROOT, "build", "mutants", "results.json"), state_of(tracked_files()), killers)
    steps, results, left = options.steps.split(","), [], []

    def tell(row, step, killer, known):
        results.append((row, step, killer))
        print(f"{'killed by ' + step if step else 'SURVIVED':<16} {row['id']:<28} {row['file']}: {killer or row['expected']}{' (known)' * known}",
              flush=True)

    for row in rows:
        known = None if options.again else kept.known(row, steps)
        if known:
            tell(row, *known, True)
        else:
            left.append(row)
    # What was never judged first, so that pieces of a catalogue come to its end.
    if not options.sample:
        left.sort(key=lambda row: kept.rows.get(row["id"], {}).get("time", 0))
    if left:
        for row, step, killer in try_rows(left, steps, kept, options.jobs, 60 * options.minutes, catalogue):
            tell(row, step, killer, False)
    if len(results) < len(rows):
        print(f"out of time: {len(rows) - len(results)} rows were not tried")
    survivors = [row for row, step, _ in results if not step]
    if survivors and options.coverage:
        for name, known in executed_lines(survivors, steps[-1]).items():
            print(f"{name}: " + {True: "a case executes it", False: "NO CASE EXECUTES IT", None: "no code of its own"}[known])
    summarize(results, skipped)
    if options.write_killers:
        killers.write([row["id"] for row in catalogue])
    counted = [r for r in results if not r[0]["expected"].startswith("none")]
    killed = sum(1 for r in counted if r[1])
    return 1 if counted and 100 * killed < options.least * len(counted) else 0


if __name__ == "__main__":
    sys.exit(main())
