"""Runs over many machines end with the report of one: a Slurm cluster of this machine alone, MPI ranks, GNU parallel; a shard that is
lost is run again and never counted as passed. What is not installed is skipped, aloud.
Usage: check_machines.py GRAPH_BENCH INPUTS_DIR [GRAPH_BENCH_MPI]"""
import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, INPUTS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
LAUNCHER = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts")
CASES = [f"--input-dir={INPUTS}", "--mode=C", "--batch=op/ci"]
os.environ["PATH"] += ":/usr/sbin:/sbin"
os.environ["OMP_NUM_THREADS"] = "1"

# In the place of graph-bench: of shard 2 it runs a case or more, then dies as often as the file `deaths` has lines.
MORTAL = """#!/bin/bash
case " $* " in *" --shard=2/"*) ;; *) exec {program} "$@" ;; esac
if [ -s {deaths} ]; then
    sed -i 1d {deaths}
    {program} "$@" | head -n 1
    kill -9 $$
fi
exec {program} "$@"
"""


def skip(what, missing):
    if missing:
        print(f"[SKIP] {what}: not installed: {missing}")
    return missing


class Machines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), 0o755)
        return self.path(name)

    def mortal(self, deaths):
        self.write("deaths", "once\n" * deaths)
        return self.write("mortal", MORTAL.format(program=PROGRAM, deaths=self.path("deaths")))

    def results(self, path):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        names = ("index", "status", "repro", "digest", "errors", "compared", "mismatches", "messages")
        return report["ended"], report["summary"], [[case[name] for name in names] for case in report["cases"]]

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "whole.json")
            subprocess.run([PROGRAM, f"--json={path}", *CASES], check=True, capture_output=True)
            cls.whole = cls.results(cls, path)

    def expect_whole(self, path):
        self.assertEqual(self.whole, self.results(path))

    def expect_lost(self, path):
        ended, summary, cases = self.results(path)
        self.assertEqual("partial", ended)
        self.assertLess(len(cases), len(self.whole[2]))
        self.assertEqual(len(cases), sum(summary.values()))


class Cluster:
    """A Slurm controller, a node and their authentication, in a folder of their own."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []
        user, host = getpass.getuser(), socket.gethostname().split(".")[0]
        for name in ("state", "spool"):
            os.mkdir(os.path.join(folder, name), 0o700)
        with open(os.path.join(folder, "key"), "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(os.path.join(folder, "key"), 0o400)
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        ports = [one.getsockname()[1] for one in sockets]
        for one in sockets:
            one.close()
        with open(os.path.join(folder, "slurm.conf"), "w", encoding="utf-8") as file:
            file.write(f"""ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=1000 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")
        self.environment = dict(os.environ, SLURM_CONF=f"{folder}/slurm.conf")
        self.start("munged", "--foreground", "--force", f"--key-file={folder}/key", f"--socket={folder}/munge",
                   f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/seed")
        self.wait(lambda: os.path.exists(f"{folder}/munge"))
        self.start("slurmctld", "-D")
        self.start("slurmd", "-D", "-N", host)
        self.wait(lambda: "idle" in subprocess.run(["sinfo", "-h", "-o", "%T"], env=self.environment, capture_output=True, text=True).stdout)

    def start(self, *command):
        with open(os.path.join(self.folder, "out-" + command[0]), "w", encoding="utf-8") as out:
            self.processes.append(subprocess.Popen(command, env=self.environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL))

    def wait(self, is_there):
        end = time.monotonic() + 60
        while not is_there():
            if time.monotonic() > end:
                told = [open(os.path.join(self.folder, name), errors="replace").read() for name in sorted(os.listdir(self.folder))
                        if name.endswith(".log") or name.startswith("out-")]
                self.stop()
                raise RuntimeError("the cluster does not start:\n" + "\n".join(told))
            time.sleep(0.1)

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


SLURM_TOOLS = [name for name in ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo") if not shutil.which(name)]


@unittest.skipIf(skip("runs under Slurm", ", ".join(SLURM_TOOLS)), "Slurm is missing")
class Slurm(Machines):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.cluster = Cluster(folder.name)
        cls.addClassCleanup(cls.cluster.stop)

    def submit(self, *options, program=PROGRAM):
        command = [os.path.join(SCRIPTS, "slurm/run.sh"), "--shards=4", f"--folder={self.path('results')}", *options, "--", *CASES]
        return subprocess.run(command, env=dict(self.cluster.environment, GRAPH_BENCH=program), cwd=self.folder, capture_output=True,
                              text=True, timeout=400)

    def test_a_job_array_ends_with_the_report_of_one_machine(self):
        result = self.submit()
        self.assertEqual(0, result.returncode, result.stdout + result.stderr)
        self.expect_whole(self.path("results/all.json"))
        self.assertIn("round 0: shards 1-4\n", result.stdout)
        self.assertEqual("", self.submit().stdout)  # all shards are there

    def test_a_lost_shard_is_run_again(self):
        result = self.submit(program=self.mortal(1))
        self.assertEqual(0, result.returncode, result.stdout + result.stderr)
        self.assertIn("round 1: shards 2\n", result.stdout)
        self.expect_whole(self.path("results/all.json"))

    def test_a_shard_that_stays_lost_is_no_success(self):
        result = self.submit("--retries=1", program=self.mortal(9))
        self.assertEqual(1, result.returncode, result.stdout + result.stderr)
        self.assertIn("lost after 2 tries: shards 2 of 4", result.stderr)
        self.expect_lost(self.path("results/all.json"))
        result = self.submit("--retries=1")  # later, with a machine that works
        self.assertEqual("round 0: shards 2\n", result.stdout)
        self.expect_whole(self.path("results/all.json"))

    def test_wrong_usage_is_told(self):
        self.assertEqual(2, self.submit("--no-such-option-of-sbatch").returncode)
        result = subprocess.run([os.path.join(SCRIPTS, "slurm/run.sh"), f"--folder={self.path('results')}", "--", "--batch=demo"],
                                capture_output=True, text=True, env=dict(os.environ, GRAPH_BENCH=PROGRAM))
        self.assertEqual(2, result.returncode)
        self.assertIn("holds another run", result.stderr)


MPI_TOOLS = [name for name in ("mpirun",) if not shutil.which(name)] + ([] if LAUNCHER else ["graph-bench-mpi"])


@unittest.skipIf(skip("runs under MPI", ", ".join(MPI_TOOLS)), "MPI is missing")
class Mpi(Machines):
    def launch(self, *options, program=PROGRAM):
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        command = ["mpirun", "--oversubscribe", "-n", "4", LAUNCHER, f"--folder={self.path('results')}", "--chunks=6",
                   f"--program={program}", *options, "--", *CASES]
        return subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=400)

    def test_ranks_end_with_the_report_of_one_machine(self):
        result = self.launch()
        self.assertEqual(0, result.returncode, result.stderr)
        self.expect_whole(self.path("results/all.json"))
        self.assertEqual(6, result.stdout.count("tests:"))  # each chunk ran once
        self.assertEqual(0, self.launch().stdout.count("tests:"))

    def test_a_lost_chunk_is_run_again(self):
        result = self.launch("-o", self.path("merged.json"), program=self.mortal(1))
        self.assertEqual(0, result.returncode, result.stderr)
        self.expect_whole(self.path("merged.json"))
        self.assertRegex(result.stderr, r"chunk 2/6 ended with -1 on rank \d")

    def test_a_chunk_that_stays_lost_is_no_success(self):
        result = self.launch("--retries=1", program=self.mortal(9))
        self.assertEqual(1, result.returncode, result.stderr)
        self.assertIn("1 of 6 chunks are lost", result.stderr)
        self.expect_lost(self.path("results/all.json"))

    def test_wrong_usage_is_told(self):
        self.assertEqual(0, self.launch().returncode)
        result = self.launch("--chunks=3")
        self.assertEqual(2, result.returncode)
        self.assertIn("holds another run", result.stderr)
        self.assertEqual(2, self.launch("--chunks=x").returncode)


@unittest.skipIf(skip("runs under GNU parallel", "" if shutil.which("parallel") else "parallel"), "GNU parallel is missing")
class Parallel(Machines):
    def test_shards_end_with_the_report_of_one_machine(self):
        recipe = ('seq 4 | parallel -j 2 --retries 3 --joblog log ' + os.path.join(SCRIPTS, "shard.sh") + ' {} 4 results "$@" > out\n'
                  'test -z "$("$GRAPH_BENCH" merge --lost=4 results/*.json)"\n'
                  '"$GRAPH_BENCH" merge --check results/*.json -o all.json')
        result = subprocess.run(["bash", "-euo", "pipefail", "-c", recipe, "recipe", *CASES], cwd=self.folder, capture_output=True,
                                text=True, env=dict(os.environ, GRAPH_BENCH=self.mortal(1)))
        self.assertEqual(0, result.returncode, result.stdout + result.stderr)
        self.expect_whole(self.path("all.json"))


unittest.main(argv=sys.argv[:1])
