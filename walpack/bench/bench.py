#!/usr/bin/env python3
"""Sizes and speeds of walpack against zstd and xz, with the bars: bench.py [--wal DIR] [--mode M]... [--segments N]

Without --wal the WAL is made first (make_wal.sh, some minutes).  Prints a Markdown table; the exit code tells
whether a bar is missed.  Of each load, N segments from all over it are measured; the first one of a load has the
checkpoint and a base of cold pages, so it is left out where there are enough.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LOADS = ["tpcb", "simple", "insert", "update"]
NAMES = {"tpcb": "TPC-B", "simple": "simple update", "insert": "insert", "update": "update, delete, vacuum"}
MODES = {"fpwoff": "FPW off", "fpwon": "FPW on", "pglz": "FPW on, pglz", "lz4": "FPW on, lz4", "zstd": "FPW on, zstd"}
SIZE_BAR = {"fpwoff": 0.40, "fpwon": 0.75, "pglz": 0.75, "lz4": 1.0, "zstd": 1.0}
ENCODE_BAR = 0.5
DECODE_BAR = 0.4


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


def measure(folder, args):
    files = pick(folder, args.segments)
    out = subprocess.run([os.path.join(HERE, "speed"), "-r", str(args.rounds), *files],
                         stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    raw, packed, zstd3, pack, zstd_c, unpack, zstd_d = map(int, out)
    zstd19 = sum(size_of(["zstd", "-q", "-19", "-c"], f) for f in files)
    xz = sum(size_of(["xz", "-6", "-c"], f) for f in files)
    return dict(raw=raw, packed=packed, zstd3=zstd3, zstd19=zstd19, xz=xz, pack=pack, zstd_c=zstd_c,
                unpack=unpack, zstd_d=zstd_d)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wal", help="folder that make_wal.sh has filled")
    parser.add_argument("--mode", action="append", choices=list(MODES))
    parser.add_argument("--segments", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    modes = args.mode or ["fpwoff", "fpwon", "pglz"]
    wal = args.wal or tempfile.mkdtemp(prefix="walpack_bench.", dir="/tmp")
    if not args.wal:
        subprocess.run([os.path.join(HERE, "make_wal.sh"), wal, *modes], check=True)
    missed = []
    print("| load | raw MB | walpack MB | / zstd -3 | / zstd -19 | / xz -6 | pack MB/s | / zstd -3 | unpack MB/s | / zstd -d |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for mode in modes:
        for load in LOADS:
            folder = os.path.join(wal, mode, load)
            if not os.path.isdir(folder) or not os.listdir(folder):
                sys.exit(f"no segments in {folder}")
            m = measure(folder, args)
            sizes = [m["packed"] / m[other] for other in ("zstd3", "zstd19", "xz")]
            pack, unpack = m["pack"] / m["zstd_c"], m["unpack"] / m["zstd_d"]
            print(f"| {NAMES[load]}, {MODES[mode]} | {m['raw'] / 1e6:.1f} | {m['packed'] / 1e6:.2f} | "
                  f"{sizes[0]:.3f} | {sizes[1]:.3f} | {sizes[2]:.3f} | {m['pack']} | {pack:.2f} | "
                  f"{m['unpack']} | {unpack:.2f} |", flush=True)
            for value, bar, what in [(SIZE_BAR[mode], sizes[0], "size / zstd -3"), (1.0, sizes[1], "size / zstd -19"),
                                     (1.0, sizes[2], "size / xz -6"), (pack, ENCODE_BAR, "pack / zstd -3"),
                                     (unpack, DECODE_BAR, "unpack / zstd -d")]:
                if value < bar:
                    missed.append(f"{load}, {mode}: {what}")
    if not args.wal:
        shutil.rmtree(wal)
    print("\nbars missed: " + ("; ".join(missed) if missed else "none"))
    sys.exit(len(missed) > 0)


main()
