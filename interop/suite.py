"""Runs the tests: `run [--relay PATH] [--tool PATH] [--example PATH] [--plane PATH] [--browser PATH] [--direct] [--scale]
[--with-node] [--figures] [--list] [NAME...]`, where NAME is a part of the names to run."""

import argparse
import importlib
import os
import queue
import shutil
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from harness import grpc_js
from harness.bed import Bed
from harness.processes import kill_all
from harness.registry import cases

HERE = Path(__file__).parent
LOGS = HERE / "logs"
RUN = LOGS / str(os.getpid())
LOG_TAIL = 25
JOBS = 2 * (os.cpu_count() or 1)
PICTURES = HERE / "pictures"
WAITING_JOBS = 7 * (os.cpu_count() or 1)


@dataclass(frozen=True)
class Peers:
    """Programs that tests need, as far as they are there."""

    relay: Path | None
    tool: Path | None
    example: Path | None
    plane: Path | None
    browser: Path | None
    dynamic: Path | None


def main():
    """The process's exit status."""
    options = arguments()
    suite = "scale" if options.scale else "figures" if options.figures else "tests"
    for module in sorted((HERE / suite).glob("[a-z]*.py")):
        importlib.import_module(f"{suite}.{module.stem}")
    named = [case for case in cases(options.direct) if not options.names or matches(case, options.names)]
    node = grpc_js.is_there()
    chosen = [case for case in named if case.lacks(options.browser, node) is None]
    if options.with_node and not node:
        print("there is no Node with gRPC: node and npm", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    relay = None if options.direct else built(options.relay, "xds-relay")
    programs = any(case.scenario.needs_programs for case in chosen)
    tool = built(options.tool, "xds") if programs else None
    example = built(options.example, "examples/watch") if programs else None
    plane = any(case.scenario.needs_plane for case in chosen)
    plane = built(options.plane, "examples/control_plane") if plane else None
    clocks = any(case.scenario.needs_clocks for case in chosen)
    dynamic = built(options.dynamic, "xds-relay", ("debug",)) if clocks else None
    if not chosen:
        print("no such test; --list shows them", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started, passed = time.monotonic(), set()
    try:
        run_all(chosen, Peers(relay, tool, example, plane, options.browser, dynamic), passed)
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        kill_all()
    failed = [case.name for case in chosen if case.name not in passed]
    print(f"{time.monotonic() - started:.0f} s")
    print_left_out(named, options.browser, node)
    print(f"{len(passed)} passed, {len(failed)} failed", *failed)
    return 1 if failed else 0


def arguments():
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(prog="run", description="The relay against real Envoy and real gRPC.")
    parser.add_argument("--relay", type=Path, help="the relay's binary (default: the workspace's build, release first)")
    parser.add_argument("--tool", type=Path, help="the tool `xds` (default: as the relay)")
    parser.add_argument("--example", type=Path, help="the example `watch` of xdstp-client (default: as the relay)")
    parser.add_argument("--plane", type=Path, help="the example `control_plane` of xds-transport, with `node_groups` beside it (default: as the relay)")
    parser.add_argument("--dynamic", type=Path, help="a build of the relay that is not static, for clocks that are wrong (default: the workspace's debug build)")
    parser.add_argument("--browser", type=Path, help="a Chromium, for the tests that look at pages; pictures: pictures/")
    parser.add_argument("--with-node", action="store_true", help="fail where there is no Node, whose tests are left out otherwise")
    parser.add_argument("--direct", action="store_true", help="no relay: clients face the origin, to check the suite")
    parser.add_argument("--scale", action="store_true", help="the tests of relays that share what they know in etcd")
    parser.add_argument("--figures", action="store_true", help="what relays and etcd cost: printed, and held against nothing")
    parser.add_argument("--list", action="store_true", help="print the names and do nothing")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a part of the names of the tests to run")
    return parser.parse_args()


def print_left_out(named, browser, node):
    """What was asked for and not run, and why."""
    left_out = {}
    for case in named:
        if lack := case.lacks(browser, node):
            left_out.setdefault(lack, []).append(case.name)
    for lack, names in left_out.items():
        print(f"{len(names)} left out, which need {lack}:", *names)


def matches(case, names):
    """Whether a case is among those that were named."""
    return any(name in case.name for name in names)


def built(given, name, profiles=("release", "debug")):
    """A program to test: the one that is named, or what the workspace built, release first."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
    candidates = [given] if given else [target / profile / name for profile in profiles]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    sys.exit(f"no program at {' or '.join(map(str, candidates))}: .ci/run interop, and scale, build them")


def run_all(chosen, peers, passed):
    """Runs what can go side by side, then the rest one by one; collects the names of those that passed."""
    remove_old_logs()
    printing = threading.Lock()
    busy = [case for case in chosen if not case.scenario.alone and not case.scenario.waits]
    waiting = [case for case in chosen if case.scenario.waits]
    alone = [case for case in chosen if case.scenario.alone]
    for together in (((waiting, WAITING_JOBS), (busy, JOBS)), ((alone, 1),)):
        workers = [worker for cases, jobs in together for worker in start(cases, jobs, peers, passed, printing)]
        for worker in workers:
            worker.join()


def start(cases, jobs, peers, passed, printing):
    """Threads that run these cases."""
    left = queue.SimpleQueue()
    for case in cases:
        left.put(case)

    def work():
        while True:
            try:
                case = left.get_nowait()
            except queue.Empty:
                return
            run_one(case, peers, passed, printing)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    return workers


def remove_old_logs():
    """Clears what earlier runs left, but not what a run that is under way needs: several may go side by side."""
    for folder in LOGS.glob("*"):
        if not Path("/proc", folder.name).exists():
            shutil.rmtree(folder)


def run_one(case, peers, passed, printing):
    """One case in a folder of its own, which is kept if it fails."""
    folder = RUN / case.name.replace("/", ".")
    folder.mkdir(parents=True)
    bed = Bed(folder, peers.relay)
    bed.browser_binary, bed.pictures = peers.browser, PICTURES
    bed.tool_binary, bed.example_binary, bed.plane_binary = peers.tool, peers.example, peers.plane
    bed.dynamic_binary = peers.dynamic
    started, failure = time.monotonic(), None
    try:
        case.run(bed)
    except Exception:
        failure = traceback.format_exc(limit=-3)
        failure += bed.remains()
    bed.close()
    with printing:
        print(f"{'FAILED' if failure else 'ok':6} {time.monotonic() - started:5.1f} s  {case.name}", flush=True)
        if failure:
            report(folder, failure)
            return
        passed.add(case.name)
    shutil.rmtree(folder)


def report(folder, failure):
    """Why a case failed, and the ends of what its processes said."""
    print(failure)
    for log in sorted([*folder.glob("*.log"), *folder.glob("*.jsonl")]):
        lines = log.read_text(errors="replace").splitlines()
        print(f"--- {log.relative_to(HERE)}: last {min(LOG_TAIL, len(lines))} of {len(lines)} lines")
        print("\n".join(line[:300] for line in lines[-LOG_TAIL:]))
    print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
