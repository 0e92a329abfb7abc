#!/usr/bin/env python3
"""Sizes and speeds of walpack against zstd -3, with the bars: bench.py [--wal DIR] [--mode M]... [--load L]... [--segments N] [--others]

Without --wal the WAL is made first (make_wal.sh, some minutes).  Prints a Markdown table; the exit code tells
whether a bar is missed.  Of each load, N segments from all over it are measured; the first one of a load has the
checkpoint and a base of cold pages, so it is left out where there are enough.  --others adds the sizes of
zstd -19 and xz -6, which takes long.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = {"tpcb": "TPC-B", "simple": "simple update", "insert": "insert", "update": "update, delete, vacuum",
         "bytea1": "64-byte bytea keys, 1 index", "bytea3": "64-byte bytea keys, 3 indexes",
         "md5_2": "256-character md5 keys, 2 indexes", "uuid1": "uuid keys, 1 index",
         "uuid3": "uuid keys, 3 indexes, 6 clients", "toast": "TOAST", "copy": "COPY", "copy2": "COPY, 2 indexes",
         "regress": "PostgreSQL's regression suite"}
MODES = {"fpwoff": "FPW off", "fpwon": "FPW on", "pglz": "FPW on, pglz", "lz4": "FPW on, lz4", "zstd": "FPW on, zstd"}
ENCODE_BAR = 0.5
DECODE_BAR = 0.4


def size_bar(load, mode):
    """The size / zstd -3 that all segments together may have; one alone may have 1."""
    if load in ("tpcb", "simple", "insert", "update"):
        return {"fpwoff": 0.40, "fpwon": 0.75, "pglz": 0.75}.get(mode, 1.0)
    return {"toast": 0.97, "copy": 0.75, "copy2": 0.75, "regress": 1.0}.get(load, 0.85)


def size_of(command, path):
    with subprocess.Popen([*command, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        total = 0
        while block := process.stdout.read(1 << 20):
            total += len(block)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} {path} failed")
    return total


def pick(folder, n):
    names = sorted(os.listdir(folder))
    if len(names) > n:
        names = names[1:]
    n = min(n, len(names))
    return [os.path.join(folder, names[i * len(names) // n]) for i in range(n)]


def speed(rounds, files):
    out = subprocess.run([os.path.join(HERE, "speed"), "-r", str(rounds), *files],
                         stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    return dict(zip(("raw", "packed", "zstd3", "pack", "zstd_c", "unpack", "zstd_d", "pack_ratio", "unpack_ratio"), map(float, out)))


def measure(folder, args):
    files = pick(folder, args.segments)
    m = speed(args.rounds, files)
    alone = [speed(0, [f]) for f in files]
    m["worst"] = max(a["packed"] / a["zstd3"] for a in alone)
    if args.others:
        m["zstd19"] = sum(size_of(["zstd", "-q", "-19", "-c"], f) for f in files)
        m["xz"] = sum(size_of(["xz", "-6", "-c"], f) for f in files)
    return m


def line(load, mode, m, missed):
    size, pack, unpack = m["packed"] / m["zstd3"], m["pack_ratio"], m["unpack_ratio"]
    bars = [(size_bar(load, mode), size, "size / zstd -3"), (1.0, m["worst"], "largest segment / zstd -3"),
            (pack, ENCODE_BAR, "pack / zstd -3"), (unpack, DECODE_BAR, "unpack / zstd -d")]
    missed += [f"{load}, {mode}: {what}" for value, bar, what in bars if value < bar]
    others = "".join(f" {m['packed'] / m[o]:.3f} |" for o in ("zstd19", "xz") if o in m)
    return (f"| {NAMES[load]}, {MODES[mode]} | {m['raw'] / 1e6:.1f} | {m['packed'] / 1e6:.2f} | {size:.3f} | "
            f"{m['worst']:.3f} |{others} {m['pack']:.0f} | {pack:.2f} | {m['unpack']:.0f} | {unpack:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wal", help="folder that make_wal.sh has filled")
    parser.add_argument("--mode", action="append", choices=list(MODES))
    parser.add_argument("--load", action="append", choices=list(NAMES))
    parser.add_argument("--segments", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--others", action="store_true")
    args = parser.parse_args()
    modes, loads = args.mode or list(MODES), args.load or list(NAMES)
    wal = args.wal or tempfile.mkdtemp(prefix="walpack_bench.", dir="/tmp")
    if not args.wal:
        subprocess.run([os.path.join(HERE, "make_wal.sh"), wal, *modes], check=True,
                       env={**os.environ, "LOADS": " ".join(loads)})
    missed = []
    others = " / zstd -19 | / xz -6 |" if args.others else ""
    print(f"| load | raw MB | walpack MB | / zstd -3 | largest |{others} pack MB/s | / zstd -3 | unpack MB/s | / zstd -d |")
    print("|---" * (9 + 2 * args.others) + "|")
    for mode in modes:
        for load in loads:
            folder = os.path.join(wal, mode, load)
            if not os.path.isdir(folder) or not os.listdir(folder):
                sys.exit(f"no segments in {folder}")
            print(line(load, mode, measure(folder, args), missed), flush=True)
    if not args.wal:
        shutil.rmtree(wal)
    print("\nbars missed: " + ("; ".join(missed) if missed else "none"))
    sys.exit(len(missed) > 0)


main()
