"""What scripts/mutants.py does beside planting: it remembers, asks the likeliest cases first, ends at the first failure, and compiles kernels of
one instruction set; faults of mutants_random.py. Usage: check_mutants.py GRAPH_BENCH INPUTS_DIR"""
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, INPUTS = sys.argv[1], sys.argv[2]
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scripts")
sys.path.insert(0, SCRIPTS)
import mutants  # noqa: E402


def row(name, family="gemm", file="a.c", search="x"):
    return {"id": name, "family": family, "file": file, "search": search, "replacement": "y"}


class Folder(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), stat.S_IRWXU)
        return self.path(name)


class Remembering(Folder):
    def results(self, state="s"):
        return mutants.Results(self.path("results.json"), state, mutants.Killers(self.path("killers.tsv")))

    def test_rows_are_judged_once_in_a_state(self):
        self.results().add(row("a"), ["ci"], "ci", "--case=a.json")
        self.assertEqual(("ci", "--case=a.json"), self.results().known(row("a"), ["ci"]))
        self.assertEqual(None, self.results("other").known(row("a"), ["ci"]))
        self.assertEqual(None, self.results().known(row("a", search="z"), ["ci"]))
        self.assertEqual(None, self.results().known(row("b"), ["ci"]))

    def test_survivors_are_judged_again_by_more_steps(self):
        self.results().add(row("a"), ["ci"], None, None)
        self.assertEqual((None, None), self.results().known(row("a"), ["ci"]))
        self.assertEqual(None, self.results().known(row("a"), ["ci", "all"]))

    def test_likeliest_cases_come_first(self):
        kept = self.results()
        rows = [row("far", file="b.c"), row("near"), row("own", file="c.c"), row("alien", family="conv", file="d.c"), row("crash"), row("slow")]
        for known, step, killer in zip(rows, ["ci"] * 5 + ["all"], ["--case=family.json", "--case=file.json", "--case=own.json",
                                                                   "--case=alien.json", "exit code 1", "--case=slow.json"]):
            kept.add(known, ["ci"], step, killer)
        expected = ["--case=own.json", "--case=file.json", "--case=family.json"]
        self.assertEqual(expected, [case for _, case in kept.killers(row("own"), ["ci"], rows)])
        kept.known_killers.write([known["id"] for known in rows])
        os.remove(self.path("results.json"))  # a new machine
        self.assertEqual(expected, [case for _, case in self.results().killers(row("own"), ["ci"], rows)])

    def test_states_differ_by_what_decides(self):
        names = ["lib/runtime/plan.c", "docs/testing.md"]
        self.assertEqual(mutants.state_of(names[:1]), mutants.state_of(names))
        self.assertNotEqual(mutants.state_of(["lib/runtime/cache.c"]), mutants.state_of(names))


class Running(Folder):
    def build(self, program):
        build = object.__new__(mutants.Build)
        build.workers = 1
        build.source, build.build = self.dir.name, self.path("build")
        self.write("build/graph-bench", program)
        return build

    def test_the_first_failure_ends_the_run(self):
        build = self.build("#!/bin/sh\necho '0:PASSED (1 ms) __REPRO: --case=a.json'\n"
                           "echo '1:FAILED (errors:1) __REPRO: --input-dir=/a --case-timeout=180s --fill=nan --case=b.json'\nsleep 60\n")
        begin = time.time()
        self.assertEqual("--fill=nan --case=b.json", build.run(["--batch=ci"], 50))
        self.assertLess(time.time() - begin, 30)

    def test_hangs_and_crashes(self):
        self.assertEqual("timeout", self.build("#!/bin/sh\nsleep 60\n").run([], 0.5))
        self.assertEqual("signal 9", self.build("#!/bin/sh\nkill -9 $$\n").run([], 50))
        self.assertEqual("exit code 3", self.build("#!/bin/sh\nexit 3\n").run([], 50))
        self.assertEqual(None, self.build("#!/bin/sh\necho '0:PASSED (1 ms)'\n").run([], 50))

    def test_cases_do_not_keep_options_of_each_other(self):
        build = self.build(f"#!/bin/sh\nexec {os.path.abspath(PROGRAM)} --json={self.path('r.json')} \"$@\" --input-dir={INPUTS}\n")
        cases = ["--caches=4096:16384:65536 --policy=max --threads=1 --fill=exact --seed=3 --dt=bf16 --case=op/abs.json", "--case=op/abs.json"]
        self.assertEqual(None, build.run_cases(cases, 300))
        done = subprocess.run([os.path.abspath(PROGRAM), "--mode=L", f"--input-dir={INPUTS}", f"--batch={self.path('build/killers')}"],
                              capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        repros = [line.split("__REPRO: ")[-1] for line in done.stdout.splitlines() if "__REPRO: " in line]
        self.assertEqual(2, len(repros), done.stdout)
        for option in ("caches", "policy", "threads", "fill", "seed", "dt"):
            self.assertIn(f"--{option}=", repros[0])
            self.assertNotIn(f"--{option}=", repros[1])


@unittest.skipUnless(shutil.which("ccache") and shutil.which("gcc") and shutil.which("nm"), "needs ccache, gcc and nm")
class Compiling(Folder):
    def symbols(self, level, source="a.isa.c"):
        path = self.write(source, "int defined_here(void);\nint defined_here(void) { return 1; }\n")
        object_file = self.path(f"gb_kernels_gemm_{level}.dir/{source}.o")
        os.makedirs(os.path.dirname(object_file), exist_ok=True)
        command = [os.path.join(SCRIPTS, "mutants_compile.sh"), "gcc", "-O3", "-MD", "-MF", object_file + ".d", "-o", object_file, "-c", path]
        subprocess.run(command, check=True, env=dict(os.environ, MUTANTS_LEVEL="avx2", CCACHE_DIR=self.path("cache")))
        self.assertTrue(os.path.exists(object_file + ".d"))
        return subprocess.run(["nm", object_file], check=True, capture_output=True, text=True).stdout

    def test_only_kernels_that_run_are_compiled(self):
        self.assertIn("defined_here", self.symbols("avx2"))
        self.assertNotIn("defined_here", self.symbols("avx512"))
        self.assertIn("defined_here", self.symbols("avx512", "plan.c"))

    def test_tables_of_other_levels_are_there(self):
        self.assertIn("gb_kernels_avx512", self.symbols("avx512", "kernels.isa.c"))


class Random(Folder):
    def draw(self, seed):
        command = [sys.executable, os.path.join(SCRIPTS, "mutants_random.py"), "--count=40", f"--seed={seed}"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def test_faults_fit_the_code_and_follow_from_the_seed(self):
        rows = mutants.read_catalogue([self.write("rows.tsv", self.draw(3))])
        self.assertEqual(40, len(rows))
        mutants.check_rows(rows, mutants.ROOT)
        self.assertEqual(self.draw(3), self.draw(3))
        self.assertNotEqual(self.draw(3), self.draw(4))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
