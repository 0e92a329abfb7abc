#!/usr/bin/env python3
"""Tests of walpack against a server: test_walpack.py [--full] [--seed N] [--only NAME] --bindir DIR

Each test prints a line "ok" or "FAIL" with its name; the exit code tells whether one failed.
Runs as any user but root, on throwaway clusters below --work (default: a new folder in /tmp).
"""

import argparse
import hashlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "../test/lib"))
import throwaway

PACK = os.path.join(ROOT, "walpack")
RESTORE = PACK + " restore"
SEGMENT = re.compile(r"[0-9A-F]{24}")
WRAPPING = 48       # bytes around the only chunk of a file

options = None
tests = []


class Failure(Exception):
    pass


def test(function):
    tests.append(function)
    return function


def check(condition, what):
    if not condition:
        raise Failure(what)


def run(*command, code=0, env=None, user_input=None):
    """Run a command; its exit code must be the given one (None: any).  Returns its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          input=user_input, timeout=300, env={**os.environ, **(env or {})})
    if code is not None and done.returncode != code:
        raise Failure(f"{' '.join(command)}: exit code {done.returncode} instead of {code}\n{done.stdout[-3000:]}")
    return done.stdout


def content(path):
    with open(path, "rb") as file:
        return file.read()


def digest(path):
    return hashlib.sha256(content(path)).hexdigest()


def wait_for(condition, what, seconds=90):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            raise Failure(f"timed out: {what}")
        time.sleep(0.05)


class Cluster(throwaway.Cluster):
    def __init__(self, name, conf="", initdb=(), backup_of=None, env=None):
        self.folder = os.path.join(options.work, name)
        super().__init__(options.bindir, os.path.join(self.folder, "data"), self.folder, os.path.join(self.folder, "log"), env=env)
        self.wal = os.path.join(self.data, "pg_wal")
        os.makedirs(self.folder)
        conf = f"""
dynamic_library_path = '{options.work}/lib:$libdir'
fsync = off
autovacuum = off
wal_keep_size = 10GB
max_prepared_transactions = 5
log_line_prefix = '%m [%p] %b '
{conf}
"""
        if backup_of:
            run("timeout", "100", f"{options.bindir}/pg_basebackup", "-h", backup_of.folder, "-U", "postgres", "-D", self.data,
                "-c", "fast", "-X", "none")
            self.place(conf)
        else:
            self.create(conf, ("-k", *initdb))

    def start(self):
        try:
            return super().start()
        except subprocess.CalledProcessError:
            raise Failure("the server did not start:\n" + self.log()[-3000:])

    def stop(self, mode="fast"):
        super().stop(mode, check=False, stderr=subprocess.DEVNULL)

    def psql(self, *arguments, code=0):
        return run(f"{options.bindir}/psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-U", "postgres",
                   "-d", "postgres", *arguments, code=code).strip()

    def sql(self, statement, code=0):
        return self.psql("-c", statement, code=code)

    def sql_after_crash(self, statement):
        """The server may be recovering from a crash, or may be about to notice one."""
        end = time.time() + 60
        while True:
            try:
                return self.sql(statement)
            except Failure:
                if time.time() > end:
                    raise
                time.sleep(0.2)

    def mixed(self, tables=20):
        self.psql("-v", f"seed={options.seed % 1000}", "-v", f"tables={tables}", "-f", f"{HERE}/mixed.sql")

    def switch(self):
        """End the current segment; returns the names of those that are complete."""
        self.sql("SELECT pg_switch_wal()")
        self.sql("SELECT txid_current()")
        current = self.sql("SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
        return sorted(f for f in os.listdir(self.wal) if SEGMENT.fullmatch(f) and f < current)

    def archived(self, name, suffix=".wpk"):
        wait_for(lambda: os.path.exists(os.path.join(self.wal, "archive_status", name + ".done")),
                 f"{name} is not archived; log:\n" + self.log()[-2000:])

    def fingerprint(self, query):
        return self.sql(f"SELECT count(*), md5(string_agg(q::text, ',' ORDER BY q::text)) FROM ({query}) q")


def listed(archive):
    """The files of an archive, without its marker."""
    return [name for name in os.listdir(archive) if name != "walpack.archive"]


def archiving(directory, more=""):
    os.makedirs(directory, exist_ok=True)
    run(PACK, "init", directory)
    return f"archive_mode = on\narchive_library = 'walpack'\nwalpack.directory = '{directory}'\n{more}\n"


def round_trip(folder, names, *pack_options, sound=True):
    """Pack and unpack segments, sound ones or not; returns the lines of walpack list."""
    packed = tempfile.mkdtemp(dir=options.work)
    back = tempfile.mkdtemp(dir=options.work)
    run(PACK, "pack", "-q", *pack_options, *[os.path.join(folder, n) for n in names], packed)
    run(PACK, "verify", "-q", packed, code=0 if sound else None)
    run(PACK, "unpack", "-q", packed, back)
    check(sorted(os.listdir(back)) == sorted(names), "not all files came back")
    for name in names:
        check(content(os.path.join(folder, name)) == content(os.path.join(back, name)), f"{name} differs")
        if sound and not pack_options:
            against_zstd(os.path.join(folder, name), os.path.join(packed, name + ".wpk"))
    lines = run(PACK, "list", packed).splitlines()[1:]
    shutil.rmtree(packed)
    shutil.rmtree(back)
    return [line.split() for line in lines]


def against_zstd(raw, packed):
    """The packed file's size and that of the whole segment compressed by zstd -3, which it is never above."""
    size = os.path.getsize(packed)
    if os.path.getsize(raw) > 16 << 20:
        return size, size       # in several chunks
    zstd = int(run(os.path.join(ROOT, "bench", "speed"), "-r", "0", raw).split()[2])
    check(size <= zstd + WRAPPING, f"{raw}: {size} bytes, zstd -3 {zstd}")
    if shutil.which("zstd"):
        command = os.path.join(options.work, "zstd_3")
        run("zstd", "-q", "-f", "-3", raw, "-o", command)
        check(size <= os.path.getsize(command) + WRAPPING, f"{raw}: {size} bytes, the command {os.path.getsize(command)}")
    return size, zstd


def all_understood(lines):
    kinds = [line[4] for line in lines]
    # zstd alone may be smaller for a segment that is one big value, hardly ever otherwise
    check(kinds.count("records") >= 0.8 * len(kinds), f"not packed as records: {kinds}")
    return sum(int(x[2]) for x in lines) / sum(int(x[1]) for x in lines)


# ---- round trips ----

def load_and_compare(name, conf="", initdb=(), tables=20, pack_options=()):
    cluster = Cluster(name, conf, initdb).start()
    try:
        cluster.mixed(tables)
        names = cluster.switch()
        lines = round_trip(cluster.wal, names, *pack_options)
        return f"{len(names)} segments, {all_understood(lines):.3f} of the original"
    finally:
        cluster.stop("immediate")


@test
def settings():
    """full-page writes, compression, wal_level, relations"""
    remarks = []
    for name, conf in [("plain", "full_page_writes = off"), ("pglz", "wal_compression = pglz"),
                       ("lz4", "wal_compression = lz4\nwal_level = logical"), ("zstd", "wal_compression = zstd")]:
        remarks.append(load_and_compare(f"settings_{name}", conf).split()[2])
    return "of the original: " + " ".join(remarks)


@test
def given_segments():
    """the WAL of another cluster, recycled segments included"""
    if not options.segments:
        return "none given"
    folder = tempfile.mkdtemp(dir=options.work)
    names = sorted(f for f in os.listdir(options.segments) if SEGMENT.fullmatch(f))
    for name in names:
        shutil.copy(os.path.join(options.segments, name), folder)
    lines = round_trip(folder, names, "-j", "2", sound=False)
    return f"{len(names)} segments, {sum(int(x[2]) for x in lines) / sum(int(x[1]) for x in lines):.3f} of the original"


@test
def relations():
    """1,000 relations"""
    return load_and_compare("relations", tables=1000)


@test
def segment_sizes():
    """segments of 1 MB and 64 MB, with little and with usual memory, by two threads"""
    small = load_and_compare("segment_1", initdb=("--wal-segsize=1",), pack_options=("-j", "2"))
    big = load_and_compare("segment_64", initdb=("--wal-segsize=64",), pack_options=("-m", "24"))
    load_and_compare("segment_64_more", initdb=("--wal-segsize=64",))
    return f"{small}; {big}"


@test
def levels():
    """every tenth level gives the same bytes back"""
    cluster = Cluster("levels").start()
    cluster.mixed()
    names = cluster.switch()
    cluster.stop("immediate")
    sizes = [all_understood(round_trip(cluster.wal, names, "-l", level)) for level in ("1", "3", "10", "19")]
    check(sizes[3] < sizes[0], f"level 19 is not smaller than level 1: {sizes}")
    return " ".join(f"{s:.3f}" for s in sizes)


def packing_memory(cluster, allowed=24):
    """What one process needs that packs segments of all loads, one after the other."""
    folder = tempfile.mkdtemp(dir=options.work)
    segments = [os.path.join(cluster.wal, n) for n in cluster.switch()]
    child = subprocess.Popen([PACK, "pack", "-q", "-m", str(allowed), *segments, folder])
    used = 0
    # what wait4 tells has that of the process before exec, this one, in it
    while child.poll() is None:
        try:
            with open(f"/proc/{child.pid}/status", encoding="ascii") as file:
                used = max([used] + [int(line.split()[1]) // 1024 for line in file if line.startswith("VmHWM")])
        except (FileNotFoundError, ProcessLookupError):
            pass
        time.sleep(.002)
    check(child.returncode == 0, "packing failed")
    check(used > 1, "nothing was measured")
    shutil.rmtree(folder)
    # the program itself, and libraries
    check(used <= allowed + 4, f"{used} MB are used instead of {allowed}")
    return used


@test
def sizes():
    """never larger than zstd -3; random keys, COPY and TOAST well below"""
    cluster = Cluster("sizes", "max_wal_size = 10GB", ("--wal-segsize=8",)).start()
    cluster.psql("-v", "n=70000", "-v", f"file={cluster.folder}/price_paid", "-f", f"{ROOT}/bench/price_paid.sql")
    random_key = "sha512(('{0} ' || i)::bytea)"
    loads = {
        "bytea1": (0.85, "CREATE TABLE t1 (id int, key bytea, n int); CREATE INDEX ON t1 (key)",
                   f"INSERT INTO t1 SELECT i, {random_key.format(1)}, i % 9 FROM generate_series(1, 40000) i"),
        "bytea3": (0.85, "CREATE TABLE t3 (id int, key bytea, n int); CREATE INDEX ON t3 (key);"
                   "CREATE INDEX ON t3 (key, id); CREATE INDEX ON t3 (n, key)",
                   f"INSERT INTO t3 SELECT i, {random_key.format(3)}, i % 9 FROM generate_series(1, 20000) i"),
        "md5_2": (0.85, "CREATE TABLE tm (id int, key text); CREATE INDEX ON tm (key); CREATE INDEX ON tm (key, id)",
                  "INSERT INTO tm SELECT i, (SELECT string_agg(md5((i * 8 + j)::text), '') FROM generate_series(1, 8) j) "
                  "FROM generate_series(1, 12000) i"),
        "uuid3": (0.85, "CREATE TABLE tu (a uuid, b uuid); CREATE INDEX ON tu (a); CREATE INDEX ON tu (b); CREATE INDEX ON tu (b, a)",
                  "INSERT INTO tu SELECT md5(i::text)::uuid, md5('b' || i)::uuid FROM generate_series(1, 35000) i"),
        "toast": (0.97, "CREATE TABLE tt (id int PRIMARY KEY, body bytea, doc text)",
                  "INSERT INTO tt SELECT i, CASE WHEN i % 2 = 0 THEN (SELECT string_agg(sha512((i || ' ' || j)::bytea), '') "
                  "FROM generate_series(1, 100) j) END, CASE WHEN i % 2 = 1 THEN (SELECT string_agg(format('{\"id\": %s, "
                  "\"name\": \"%s\"}', i * j, substr(md5((i * j)::text), 1, 6)), ', ') FROM generate_series(1, 200) j) END "
                  "FROM generate_series(1, 2400) i"),
        "copy": (0.75, "CREATE TABLE tc (transaction uuid, price numeric, transfer_date date, postcode text, property_type char(1), "
                 "newly_built boolean, duration char(1), paon text, saon text, street text, locality text, city text, "
                 "district text, county text, ppd_category_type char(1), record_status char(1))",
                 f"COPY tc FROM '{cluster.folder}/price_paid'"),
        # the same values again, too far away for zstd to find all of them
        "blobs": (0.7, "CREATE TABLE tb (n int, b bytea); ALTER TABLE tb ALTER b SET STORAGE EXTERNAL; INSERT INTO tb "
                  "SELECT 0, string_agg(sha512(i::text::bytea), '') FROM generate_series(1, 9000) i",
                  "DO $$ BEGIN FOR i IN 1..26 LOOP UPDATE tb SET n = i, b = b || ''; COMMIT; END LOOP; END $$"),
        "messages": (1, "SELECT", "SELECT pg_logical_emit_message(false, 'blob', (SELECT string_agg(sha512((j % 16000)::text::bytea), '') "
                     "FROM generate_series(i * 800, i * 800 + 799) j)) FROM generate_series(0, 299) i"),
        # of 14 MB half random, half of what was there 1.5 MB before
        "half": (0.97, "SELECT", "SELECT pg_logical_emit_message(false, 'blob', (SELECT string_agg(sha512((CASE WHEN j < 110000 THEN j ELSE j % 24000 "
                 "END)::text::bytea), '') FROM generate_series(i * 800, i * 800 + 799) j)) FROM generate_series(0, 274) i"),
        "toast and ddl": (1, "CREATE TABLE tr (b bytea)", "INSERT INTO tr SELECT string_agg(sha512((i / 30)::text::bytea || i::text::bytea), '') "
                            "FROM generate_series(1, 60000) i GROUP BY i / 30; DO $$ BEGIN FOR i IN 1..150 LOOP "
                            "EXECUTE 'CREATE TABLE ddl_' || i || ' (a int PRIMARY KEY, b text)'; END LOOP; END $$"),
        "updates": (0.6, "CREATE TABLE ta (id int PRIMARY KEY, n int, t text); "
                    "INSERT INTO ta SELECT i, 0, 'name ' || i % 100 FROM generate_series(1, 30000) i",
                    "UPDATE ta SET n = n + 1 WHERE id % 2 = 0; DELETE FROM ta WHERE id % 7 = 0; UPDATE ta SET n = n + 2"),
    }
    remarks = []
    for name, (bar, prepare, load) in loads.items():
        cluster.sql(prepare)
        before = set(cluster.switch())
        cluster.sql("CHECKPOINT")
        cluster.sql(load)
        worst = total = total_zstd = 0
        for segment in [n for n in cluster.switch() if n not in before]:
            raw = os.path.join(cluster.wal, segment)
            packed = os.path.join(options.work, segment + ".wpk")
            run(PACK, "pack", raw, packed)
            size, zstd = against_zstd(raw, packed)
            total += size
            total_zstd += zstd
            # a few records and zeros compress to next to nothing, either way
            if zstd > 50000:
                worst = max(worst, size / zstd)
        # the last segment may have no repeats
        if name == "blobs":
            worst = total / total_zstd
        check(0 < worst <= bar, f"{name}: {worst:.3f} of zstd -3, the bar is {bar}")
        remarks.append(f"{name} {worst:.2f}")
    remarks.append(f"{packing_memory(cluster)} MB")
    cluster.stop("immediate")
    # as ended by a switch: next to nothing, and zeros
    for pages in (1, 2, 16):
        raw = os.path.join(options.work, segment)
        with open(raw, "wb") as file:
            whole = content(os.path.join(cluster.wal, segment))
            file.write(whole[:pages * 8192] + bytes(len(whole) - pages * 8192))
        os.unlink(raw + ".wpk") if os.path.exists(raw + ".wpk") else None
        run(PACK, "pack", raw, raw + ".wpk")
        size, zstd = against_zstd(raw, raw + ".wpk")
        check(size <= zstd, f"{pages} pages and zeros: {size} bytes, zstd -3 {zstd}")
    return "of zstd -3: " + " ".join(remarks)


@test
def damaged_wal():
    """recycled tails, zeroed pages, flipped bits, cut files: packed all the same"""
    rand = random.Random(options.seed)
    cluster = Cluster("damaged").start()
    cluster.mixed()
    names = cluster.switch()
    cluster.stop("immediate")
    folder = tempfile.mkdtemp(dir=options.work)
    for i in range(40 if options.full else 12):
        data = bytearray(content(os.path.join(cluster.wal, rand.choice(names))))
        other = content(os.path.join(cluster.wal, rand.choice(names)))
        at = rand.randrange(len(data))
        kind = i % 6
        if kind == 0:
            data[at:] = other[at:]
        elif kind == 1:
            page = at // 8192 * 8192
            data[page:page + 8192] = bytes(8192)
        elif kind == 2:
            for _ in range(rand.randrange(1, 200)):
                data[rand.randrange(len(data))] ^= 1 << rand.randrange(8)
        elif kind == 3:
            data = data[:at]
        elif kind == 4:
            data[at:] = rand.randbytes(len(data) - at)
        else:
            data = bytearray(rand.randbytes(1 << rand.randrange(21)))
        name = f"{1:08X}{0:08X}{i:08X}"
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    names = sorted(os.listdir(folder))
    for line in round_trip(folder, names, sound=False):
        check(int(line[2]) <= int(line[1]) + 64, f"{line[0]} grew from {line[1]} to {line[2]}")
    return f"{len(names)} files"


# ---- commands ----

@test
def commands():
    """retry, different contents, small files, damage, exit codes"""
    folder = os.path.join(options.work, "commands")
    archive = os.path.join(folder, "archive")
    os.makedirs(archive)
    cluster = Cluster("commands_cluster").start()
    cluster.mixed()
    names = cluster.switch()
    cluster.stop("immediate")
    first, second = (os.path.join(cluster.wal, n) for n in names[:2])
    packed = os.path.join(archive, names[0] + ".wpk")
    target = os.path.join(folder, "target")

    run(PACK, "pack", first, archive)
    inode = os.stat(packed).st_ino
    run(PACK, "pack", first, archive)
    check(os.stat(packed).st_ino == inode, "an identical file was written again")
    before = digest(packed)
    other = os.path.join(folder, names[0])
    shutil.copy(second, other)
    check("contents other than" in run(PACK, "pack", other, packed, code=1), "no word about other contents")
    check(digest(packed) == before, "an archived file was changed")

    history = os.path.join(folder, "00000002.history")
    with open(history, "w") as file:
        file.write("1\t0/3000000\tno recovery target specified\n")
    run(PACK, "pack", history, archive)
    check(content(os.path.join(archive, "00000002.history")) == content(history), "the history file changed")
    os.unlink(os.path.join(archive, "00000002.history"))
    run(PACK, "pack", history, os.path.join(archive, "00000002.history.wpk"))
    check(listed(archive).count("00000002.history") == 1, "a history file got a suffix")

    run(PACK, "restore", archive, names[0], target)
    check(content(target) == content(first), "restored bytes differ")
    run(PACK, "restore", archive, "00000002.history", target)
    check(content(target) == content(history), "restored history differs")
    check("is not an archive" in run(PACK, "restore", archive, "0000000100000000000000FF", target, code=255), "no word about the marker")
    run(PACK, "init", archive)
    run(PACK, "restore", archive, "0000000100000000000000FF", target, code=1)
    run(PACK, "restore", os.path.join(folder, "none"), names[0], target, code=255)
    run(PACK, "pack", second, os.path.join(archive, names[1]))
    run(PACK, "restore", archive, names[1], target)
    check(content(target) == content(second), "a file packed under the segment's own name differs")

    os.unlink(target)
    whole = content(packed)
    rand = random.Random(options.seed)
    harmless = 0
    for i in range(60):
        data = bytearray(whole)
        if i % 3 == 0:
            data = data[:rand.randrange(len(data))]
        else:
            data[rand.randrange(len(data))] ^= 1 << rand.randrange(8)
        with open(packed, "wb") as file:
            file.write(data)
        if i % 3 > 0 and subprocess.run([PACK, "verify", "-q", packed], stderr=subprocess.DEVNULL).returncode == 0:
            # a bit on which no byte of the segment depends, of a guess for instance
            run(PACK, "restore", archive, names[0], target)
            check(content(target) == content(first), "a damaged file is taken for another segment")
            os.unlink(target)
            harmless += 1
            continue
        run(PACK, "verify", "-q", packed, code=1)
        run(PACK, "restore", archive, names[0], target, code=255)
        check(not os.path.exists(target) and not os.path.exists(target + ".tmp"), "damage left a target")
    check(harmless <= 3, f"{harmless} damaged files make no difference")
    with open(packed, "wb") as file:
        file.write(whole[:7] + b"\x01" + whole[8:])
    check("another version" in run(PACK, "verify", "-q", packed, code=1), "no word about the version")
    check("No such file" in run(PACK, "verify", "/nonexistent", code=1), "no word about a missing file")
    run(PACK, "pack", first, second, target, code=1)
    run(PACK, "pack", "-l", "20", first, target, code=1)
    run(PACK, "nonsense", code=1)
    return f"{60 - harmless} damaged files refused"


@test
def destinations():
    """a target that is no directory has the segment's name; unpacking and racing archivers replace nothing"""
    folder = os.path.join(options.work, "destinations")
    archive = os.path.join(folder, "archive")
    os.makedirs(archive)
    cluster = Cluster("destinations_cluster").start()
    cluster.mixed(2)
    names = cluster.switch()
    cluster.stop("immediate")
    first, second = (os.path.join(cluster.wal, n) for n in names[:2])
    none = os.path.join(folder, "none")
    for target in (none, none + "/", os.path.join(archive, names[1]), os.path.join(archive, names[0] + ".zst")):
        said = run(PACK, "pack", first, target, code=1)
        check("hint:" in said, f"no hint about {target}: {said}")
    check(listed(archive) == [] and not os.path.exists(none), "a file was made")

    run(PACK, "pack", first, archive)
    packed = os.path.join(archive, names[0] + ".wpk")
    # after a crash of the server it is archived again
    os.chmod(packed, 0o400)
    run(PACK, "pack", first, archive)
    target = os.path.join(folder, "target")
    shutil.copy(second, target)
    check("contents other than" in run(PACK, "unpack", packed, target, code=1), "no word about other contents")
    check(content(target) == content(second), "a file of other contents was overwritten")
    run(PACK, "unpack", "--force", packed, target)
    check(content(target) == content(first), "--force did not replace the file")
    inode = os.stat(target).st_ino
    run(PACK, "unpack", packed, target)
    check(os.stat(target).st_ino == inode, "an identical file was written again")

    # another archiver's file appears when ours is about to get its name
    rival = os.path.join(folder, "rival")
    run(PACK, "pack", second, folder)
    os.rename(os.path.join(folder, names[1] + ".wpk"), rival)
    os.unlink(packed)
    shim = {"LD_PRELOAD": os.path.join(HERE, "full_disk.so"), "RIVAL": rival, "RIVAL_NAME": packed}
    said = run(PACK, "pack", first, archive, code=1, env=shim)
    check("contents other than" in said, f"no word about the other archiver's file: {said}")
    check(content(packed) == content(rival), "another archiver's file was replaced")
    check(listed(archive) == [names[0] + ".wpk"], "a temporary file is left")
    return "nothing replaced"


@test
def no_plain_files():
    """FIFOs, sockets, devices and directories are errors at once"""
    folder = os.path.join(options.work, "no_plain_files")
    name = f"{1:08X}{0:08X}{1:08X}"
    target = os.path.join(folder, "target")
    listener = socket.socket(socket.AF_UNIX)

    def make_socket(path):
        os.chdir(os.path.dirname(path))
        listener.bind(os.path.basename(path))

    kinds = {"fifo": os.mkfifo, "directory": os.mkdir, "socket": make_socket, "device": lambda path: os.symlink("/dev/null", path)}
    for kind, make in kinds.items():
        archive = os.path.join(folder, kind)
        os.makedirs(os.path.join(archive, "out"))
        path = os.path.join(archive, name + ".wpk")
        make(path)
        for command, code in (([PACK, "restore", archive, name, target], 255), ([PACK, "verify", path], 1),
                              ([PACK, "unpack", path, target], 1), ([PACK, "pack", path, os.path.join(archive, "out")], 1)):
            if kind == "directory" and command[0] == PACK:
                continue        # stands for the files in it
            said = run("timeout", "20", *command, code=code)
            check("regular file" in said, f"{kind}: {' '.join(command)} says {said}")
        plain = os.path.join(folder, name)
        with open(plain, "w") as file:
            file.write(kind)
        said = run("timeout", "20", PACK, "pack", plain, path if kind != "directory" else archive, code=1)
        check("regular file" in said, f"{kind} as the target: {said}")
    archive = os.path.join(folder, "tmp")
    os.makedirs(archive)
    os.mkfifo(os.path.join(archive, name + ".wpk.tmp"))
    check("regular file" in run("timeout", "20", PACK, "pack", plain, archive, code=1), "a FIFO as temporary file")
    os.remove(os.path.join(archive, name + ".wpk.tmp"))
    victim = os.path.join(folder, "victim")
    with open(victim, "w") as file:
        file.write("kept")
    os.symlink(victim, os.path.join(archive, name + ".wpk.tmp"))
    run("timeout", "20", PACK, "pack", plain, archive, code=1)
    with open(victim) as file:
        check(file.read() == "kept", "a temporary file that is a link: its target is overwritten")
    os.symlink("nowhere", os.path.join(archive, name))
    run(PACK, "restore", archive, name, target, code=255)
    os.remove(os.path.join(archive, name))
    open(os.path.join(archive, name), "w").close()
    check("is empty" in run(PACK, "restore", archive, name, target, code=255), "an empty segment")
    return ", ".join(kinds)


@test
def verify():
    """verify: nothing there, gaps, cut segments, wrong names; pack does not pack again"""
    folder = os.path.join(options.work, "verify")
    archive, old, new = (os.path.join(folder, d) for d in ("archive", "old", "new"))
    for d in (archive, old, new):
        os.makedirs(d)
    check("no WAL" in run(PACK, "verify", archive, code=1), "no word about an empty directory")
    cluster = Cluster("verify_cluster", initdb=("--wal-segsize=1",)).start()
    cluster.mixed()
    names = cluster.switch()[:8]
    cluster.stop("immediate")
    run(PACK, "pack", "-q", *[os.path.join(cluster.wal, n) for n in names], archive)
    run(PACK, "verify", "-q", archive)
    for missing in (names[3], names[4]):
        os.rename(os.path.join(archive, missing + ".wpk"), os.path.join(folder, missing))
    said = run(PACK, "verify", "-q", archive, code=1)
    check(f"timeline 1: 2 missing between {names[2]} and {names[5]}" in said, f"no word about the gap: {said}")
    run(PACK, "verify", "-q", *[os.path.join(archive, f) for f in listed(archive)])
    for missing in (names[3], names[4]):
        os.rename(os.path.join(folder, missing), os.path.join(archive, missing + ".wpk"))

    plain = os.path.join(archive, names[7])
    os.unlink(plain + ".wpk")
    whole = content(os.path.join(cluster.wal, names[7]))
    for data, word in ((whole[:-8192], "bytes of a segment"), (whole[:10], "not WAL"),
                       (content(os.path.join(cluster.wal, names[6])), "another segment")):
        with open(plain, "wb") as file:
            file.write(data)
        check(word in run(PACK, "verify", "-q", archive, code=1), f"no word: {word}")
    with open(plain, "wb") as file:
        file.write(whole)
    run(PACK, "verify", "-q", archive)

    # an archive that is half packed: what is packed is copied
    run(PACK, "pack", "-q", archive, new)
    check(sorted(os.listdir(new)) == [n + ".wpk" for n in names], f"other names: {os.listdir(new)}")
    check(content(os.path.join(new, names[0] + ".wpk")) == content(os.path.join(archive, names[0] + ".wpk")), "packed again")
    run(PACK, "pack", "-q", archive, new)
    run(PACK, "unpack", "-q", new, old)
    for name in names:
        check(content(os.path.join(old, name)) == content(os.path.join(cluster.wal, name)), f"{name} differs")
    with open(os.path.join(archive, names[0] + ".wpk"), "r+b") as file:
        file.seek(1000)
        file.write(b"damage")
    os.unlink(os.path.join(new, names[0] + ".wpk"))
    check("damaged" in run(PACK, "pack", "-q", archive, new, code=1), "damage was copied")
    check(not os.path.exists(os.path.join(new, names[0] + ".wpk")), "a damaged file was copied")
    return f"{len(names)} segments"


@test
def two_at_once():
    """two archivers at work on the same files in the same directory"""
    cluster = Cluster("twice").start()
    cluster.mixed()
    names = cluster.switch()
    cluster.stop("immediate")
    archive = os.path.join(options.work, "twice", "archive")
    back = os.path.join(options.work, "twice", "back")
    os.makedirs(archive)
    os.makedirs(back)
    files = [os.path.join(cluster.wal, n) for n in names]
    for _ in range(5):
        both = [subprocess.Popen([PACK, "pack", "-q", *files, archive], stderr=subprocess.DEVNULL) for _ in range(2)]
        for process in both:
            process.wait(timeout=100)
        run(PACK, "pack", "-q", *files, archive)
        run(PACK, "unpack", "-q", archive, back)
        for name in names:
            check(content(os.path.join(back, name)) == content(os.path.join(cluster.wal, name)), f"{name} differs")
        check(not [f for f in listed(archive) if f.endswith(".tmp")], "a temporary file is left")
        shutil.rmtree(archive)
        os.makedirs(archive)
    return "5 rounds"


@test
def statistics():
    """walpack stats: the same records as pg_waldump, and the thread's lengths"""
    cluster = Cluster("statistics", "full_page_writes = off").start()
    cluster.sql("CREATE TABLE t (a int PRIMARY KEY, b int)")
    cluster.switch()
    first = cluster.sql("SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
    cluster.sql("INSERT INTO t SELECT i, 0 FROM generate_series(1, 20000) i")
    cluster.sql("SELECT count(*) FROM (SELECT * FROM t FOR UPDATE) q")
    cluster.sql("DELETE FROM t WHERE a % 2 = 0")
    names = [n for n in cluster.switch() if n >= first]
    cluster.stop("immediate")
    mine, found = same_types(cluster, names)
    check(found >= 5, f"only {found} types")
    for name, lengths in {"Heap/DELETE": (54, 56, 52, 56), "Heap/LOCK": (54, 56, 52, 56),
                          "Btree/INSERT_LEAF": (64, 64, 63, 64), "Transaction/COMMIT": (34, 40, 34, 40)}.items():
        check(mine[name][1:] == lengths, f"{name}: {mine[name]}")
    cluster = Cluster("statistics_all", "wal_level = logical").start()
    cluster.mixed(5)
    names = cluster.switch()
    cluster.stop("immediate")
    mine, all_found = same_types(cluster, names)
    check("Transaction/INVALIDATION" in mine, f"no invalidations: {mine}")
    return f"{found} and {all_found} record types"


def same_types(cluster, names):
    """walpack stats has the names and numbers that pg_waldump has; returns its lines and their number."""
    mine = {}
    for line in run(PACK, "stats", *[os.path.join(cluster.wal, n) for n in names]).splitlines():
        words = line.split()
        if len(words) == 7 and "/" in words[0]:
            mine[words[0]] = (int(words[1]), *map(float, words[2:6]))
    theirs = run(f"{options.bindir}/pg_waldump", "--stats=record", "-p", cluster.wal, names[0], names[-1], code=None)
    found = 0
    for line in theirs.splitlines():
        words = line.replace("(", " ").replace(")", " ").split()
        if len(words) > 4 and "/" in words[0] and words[1].isdigit():
            check(mine.get(words[0], (0,))[0] == int(words[1]), f"{words[0]}: {mine.get(words[0])}, not {words[1]}")
            found += 1
    check(found == len(mine), f"{found} types, not {len(mine)}")
    return mine, found


# ---- the archive module ----

def same_as_wal(cluster, archive, names):
    back = tempfile.mkdtemp(dir=options.work)
    run(PACK, "verify", "-q", archive)
    for name in names:
        run(PACK, "restore", archive, name, os.path.join(back, name))
        check(content(os.path.join(back, name)) == content(os.path.join(cluster.wal, name)), f"{name} differs")
    shutil.rmtree(back)


@test
def recovery():
    """archive, base backup, recovery to a named point, the new timeline, recovery to its end"""
    archive = os.path.join(options.work, "recovery_archive")
    cluster = Cluster("recovery_a", archiving(archive)).start()
    cluster.sql("CREATE EXTENSION amcheck")
    cluster.mixed()
    backup = Cluster("recovery_b", backup_of=cluster)
    second = Cluster("recovery_c", backup_of=cluster)
    cluster.sql("UPDATE plain SET k = -k WHERE id % 11 = 0")
    expected = cluster.fingerprint("SELECT * FROM plain")
    cluster.sql("SELECT pg_create_restore_point('here')")
    cluster.sql("DROP TABLE plain")
    cluster.archived(cluster.switch()[-1])
    same_as_wal(cluster, archive, [n for n in cluster.switch()[:-1]])
    cluster.stop("immediate")

    restore = f"""
restore_command = '{RESTORE} {archive} %f %p'
recovery_target_action = promote
archive_cleanup_command = ''
"""
    backup.configure(restore + "recovery_target_name = 'here'")
    open(os.path.join(backup.data, "recovery.signal"), "w").close()
    backup.start()
    wait_for(lambda: backup.sql("SELECT pg_is_in_recovery()") == "f", "recovery does not end")
    check(backup.fingerprint("SELECT * FROM plain") == expected, "the table differs after recovery")
    backup.sql("SELECT bt_index_check(oid, true) FROM pg_class WHERE relname = 'plain_pkey'")
    backup.sql("INSERT INTO plain VALUES (1000000, 1, 'new timeline')")
    later = backup.fingerprint("SELECT * FROM plain")
    backup.archived(backup.switch()[-1])
    wait_for(lambda: os.path.exists(os.path.join(archive, "00000002.history")), "no history file in the archive")
    check([f for f in listed(archive) if f.endswith(".backup")], "no backup label in the archive")
    backup.stop()

    second.configure(restore + "recovery_target_timeline = 'latest'")
    open(os.path.join(second.data, "recovery.signal"), "w").close()
    second.start()
    wait_for(lambda: second.sql("SELECT pg_is_in_recovery()") == "f", "recovery does not end")
    check(second.fingerprint("SELECT * FROM plain") == later, "the table differs on the new timeline")
    second.stop()
    run(f"{options.bindir}/pg_checksums", "--check", "-D", second.data)
    run(PACK, "verify", "-q", archive)
    return f"{len(listed(archive))} files"


@test
def standby():
    """a standby is promoted: the last segment of the old timeline is archived as partial"""
    archive = os.path.join(options.work, "standby_archive")
    cluster = Cluster("standby_a", archiving(archive)).start()
    backup = Cluster("standby_b", backup_of=cluster)
    backup.configure(f"primary_conninfo = 'host={cluster.folder} user=postgres'")
    open(os.path.join(backup.data, "standby.signal"), "w").close()
    backup.start()
    cluster.mixed(5)
    expected = cluster.fingerprint("SELECT * FROM plain")
    lsn = cluster.sql("SELECT pg_current_wal_flush_lsn()")
    wait_for(lambda: backup.sql(f"SELECT pg_last_wal_replay_lsn() >= '{lsn}'") == "t", "the standby lags")
    cluster.stop("immediate")
    backup.sql("SELECT pg_promote()")
    check(backup.fingerprint("SELECT * FROM plain") == expected, "the table differs on the standby")
    wait_for(lambda: [f for f in listed(archive) if f.endswith(".partial.wpk")], "no partial segment")
    backup.archived(backup.switch()[-1])
    backup.stop()
    run(PACK, "verify", "-q", archive)
    partial = [line.split() for line in run(PACK, "list", archive).splitlines() if ".partial" in line]
    check(partial[0][4] == "records", f"the partial segment was packed as {partial[0][4]}")
    return f"{partial[0][0]}: {partial[0][3]} of the original"


@test
def untrusted_archive_stops_recovery():
    """what may not be the whole archive must not pass for its end"""
    archive = os.path.join(options.work, "untrusted_archive")
    cluster = Cluster("untrusted_a", archiving(archive)).start()
    cases = ("unmounted", "emptied", "other", "segment", "length", "foreign", "sound")
    backups = {case: Cluster("untrusted_" + case, backup_of=cluster) for case in cases}
    cluster.mixed()
    cluster.archived(cluster.switch()[-1])
    cluster.stop("immediate")
    other_archive = os.path.join(options.work, "untrusted_other_archive")
    other = Cluster("untrusted_b", archiving(other_archive)).start()
    other.mixed()
    while other.switch()[-1] < max(listed(archive))[:24]:
        pass
    other.archived(max(listed(archive))[:24])
    other.stop("immediate")
    check("of another cluster" in run(PACK, "init", "-D", cluster.data, other_archive, code=1), "init takes another cluster's archive")

    names = sorted(f for f in listed(archive) if f.endswith(".wpk"))
    last, before = names[-1], names[-2]
    folders = {"unmounted": os.path.join(options.work, "untrusted_none"), "other": other_archive}
    for case in cases:
        if case not in folders:
            folders[case] = os.path.join(options.work, "untrusted_archive_" + case)
            shutil.copytree(archive, folders[case])
    for name in os.listdir(folders["emptied"]):
        os.unlink(os.path.join(folders["emptied"], name))
    shutil.copy(os.path.join(archive, before), os.path.join(folders["segment"], last))
    run(PACK, "unpack", "-q", os.path.join(archive, last), os.path.join(folders["length"], last[:24]))
    os.unlink(os.path.join(folders["length"], last))
    os.truncate(os.path.join(folders["length"], last[:24]), 8192 * 100)
    shutil.copy(os.path.join(other_archive, last), os.path.join(folders["foreign"], last))

    for case in cases:
        backup = backups[case]
        backup.configure(f"restore_command = '{RESTORE} {folders[case]} %f %p'\narchive_mode = off")
        open(os.path.join(backup.data, "recovery.signal"), "w").close()
        throwaway.Cluster.start(backup, check=False)
        if case == "sound":
            wait_for(lambda: "archive recovery complete" in backup.log(), "a sound archive does not do")
            backup.stop("immediate")
            continue
        wait_for(lambda: "could not restore file" in backup.log(), case + ": recovery went on")
        check("FATAL:  could not restore file" in backup.log(), case + ": recovery went on")
        wait_for(lambda: not os.path.exists(os.path.join(backup.data, "postmaster.pid")), case + ": the server did not stop")
        check("archive recovery complete" not in backup.log(), case + ": recovery ended")
    return f"{len(names)} segments"


@test
def recycled_segments_are_left_out():
    """segments that the server has renamed for later use are not archived under these names"""
    folder = os.path.join(options.work, "recycled")
    archive = os.path.join(options.work, "recycled_archive")
    os.makedirs(folder)
    os.makedirs(archive)
    cluster = Cluster("recycled_a").start()
    cluster.mixed(5)
    name = cluster.switch()[0]
    cluster.stop("immediate")
    shutil.copy(os.path.join(cluster.wal, name), folder)
    later = name[:-2] + "FE"
    shutil.copy(os.path.join(cluster.wal, name), os.path.join(folder, later))
    said = run(PACK, "-j", "2", "pack", folder, archive)
    check(listed(archive) == [name + ".wpk"], f"archived: {listed(archive)}")
    check("1 segments are not what their names say" in said, said)
    run(PACK, "verify", "-q", archive)
    check("Usage:" in run(PACK, "pack", "--help"), "no help behind a verb")
    run(PACK, "restore", archive, code=255)
    run(PACK, "restore", "--nothing", code=255)
    return name


@test
def damaged_archive_stops_recovery():
    """a damaged file must not pass for the end of the archive"""
    archive = os.path.join(options.work, "stops_archive")
    cluster = Cluster("stops_a", archiving(archive)).start()
    backup = Cluster("stops_b", backup_of=cluster)
    cluster.mixed()
    cluster.archived(cluster.switch()[-1])
    cluster.stop("immediate")
    middle = sorted(f for f in listed(archive) if f.endswith(".wpk"))[-1]
    path = os.path.join(archive, middle)
    data = bytearray(content(path))
    data[len(data) // 2] ^= 1
    with open(path, "wb") as file:
        file.write(data)
    backup.configure(f"restore_command = '{RESTORE} {archive} %f %p'")
    open(os.path.join(backup.data, "recovery.signal"), "w").close()
    throwaway.Cluster.start(backup, check=False)
    wait_for(lambda: "could not restore file" in backup.log(), "recovery went on")
    log = backup.log()
    check("FATAL:  could not restore file" in log, "recovery went on:\n" + log[-2000:])
    check("damaged" in log, "no word about damage")
    wait_for(lambda: not os.path.exists(os.path.join(backup.data, "postmaster.pid")), "the server did not stop")
    return middle


@test
def group_access():
    """files of a cluster that its group may read are for the group, others are not"""
    modes = []
    for name, initdb in (("group", ("-g",)), ("owner", ())):
        archive = os.path.join(options.work, f"access_{name}_archive")
        cluster = Cluster(f"access_{name}", archiving(archive), initdb=initdb).start()
        segment = cluster.switch()[-1]
        cluster.archived(segment)
        cluster.stop()
        target = os.path.join(cluster.wal, "RESTORED")
        # this one has the umask 077, the server one that suits the cluster
        umask = os.umask(0o027)
        run(PACK, "restore", archive, segment, target)
        os.umask(umask)
        modes.append([oct(os.stat(f).st_mode & 0o777) for f in (os.path.join(archive, segment + ".wpk"), target)])
    check(modes == [["0o640", "0o640"], ["0o600", "0o600"]], f"modes: {modes}")
    return "640 and 600"


@test
def killed_archiver():
    """kill -9 of the archiver again and again under load: nothing missing, nothing half"""
    rand = random.Random(options.seed)
    archive = os.path.join(options.work, "killed_archive")
    cluster = Cluster("killed", archiving(archive, "wal_level = replica"), ("--wal-segsize=16",)).start()
    cluster.sql("CREATE TABLE load (id serial PRIMARY KEY, t text)")
    kills = 5 if options.full else 1
    for _ in range(kills):
        cluster.sql_after_crash("INSERT INTO load (t) SELECT md5(i::text) FROM generate_series(1, 400000) i")
        pids = []

        # the server starts a new archiver every ten seconds at most
        def found():
            pids[:] = cluster.sql_after_crash("SELECT pid FROM pg_stat_activity WHERE backend_type = 'archiver'").split()
            return pids

        wait_for(found, "no archiver")
        cluster.sql_after_crash("SELECT pg_switch_wal()")
        time.sleep(rand.random() * 0.3)
        os.kill(int(pids[0]), signal.SIGKILL)
        time.sleep(0.3)
    cluster.sql_after_crash("SELECT pg_switch_wal()")
    names = cluster.switch()
    cluster.archived(names[-1])
    wait_for(lambda: not [f for f in os.listdir(os.path.join(cluster.wal, "archive_status")) if f.endswith(".ready")],
             "files are left")
    same_as_wal(cluster, archive, names)
    check(not [f for f in listed(archive) if f.endswith(".tmp")], "a temporary file is left")
    cluster.stop()
    return f"{kills} kills, {len(names)} segments"


@test
def killed_command():
    """kill -9 of walpack pack at any moment: what has its final name is whole, the next attempt takes over"""
    rand = random.Random(options.seed)
    archive = os.path.join(options.work, "killed_command_archive")
    os.makedirs(archive)
    cluster = Cluster("killed_command").start()
    cluster.mixed()
    names = cluster.switch()
    cluster.stop("immediate")
    files = [os.path.join(cluster.wal, n) for n in names]
    left = 0
    for _ in range(300 if options.full else 60):
        process = subprocess.Popen([PACK, "pack", "-q", *files, archive])
        time.sleep(rand.random() * 0.1 * len(names))
        process.kill()
        process.wait()
        whole = [f for f in listed(archive) if not f.endswith(".tmp")]
        left += len(listed(archive)) - len(whole)
        if whole:
            run(PACK, "verify", "-q", *[os.path.join(archive, f) for f in whole])
            os.unlink(os.path.join(archive, rand.choice(whole)))
    run(PACK, "pack", "-q", *files, archive)
    same_as_wal(cluster, archive, names)
    check(sorted(listed(archive)) == sorted(n + ".wpk" for n in names), "other files are left")
    check(left > 0, "no attempt was interrupted in the middle")
    return f"{left} temporary files taken over"


@test
def full_disk():
    """no space: the archiver stays, no file gets its final name; then it goes on"""
    flag = os.path.join(options.work, "disk_is_full")
    archive = os.path.join(options.work, "full_archive")
    shim = {"LD_PRELOAD": os.path.join(HERE, "full_disk.so"), "FULL_DISK": flag}
    cluster = Cluster("full", archiving(archive), env=shim).start()
    cluster.mixed(5)
    cluster.archived(cluster.switch()[-1])
    open(flag, "w").close()
    done = set(listed(archive))
    pid = cluster.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'archiver'")
    cluster.sql("INSERT INTO plain SELECT i, i, 'more' FROM generate_series(100000, 150000) i")
    names = cluster.switch()
    wait_for(lambda: "No space left on device" in cluster.log(), "the archiver did not complain")
    time.sleep(3)
    check(set(listed(archive)) == done, f"files appeared: {set(listed(archive)) - done}")
    check(cluster.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'archiver'") == pid,
          "the archiver was started anew")
    run(PACK, "pack", os.path.join(cluster.wal, names[0]), os.path.join(options.work, "never"), code=1, env=shim)
    check(not [f for f in os.listdir(options.work) if f.startswith("never")], "the command left a file")
    os.unlink(flag)
    cluster.archived(names[-1])
    same_as_wal(cluster, archive, names)
    cluster.stop()
    return f"{len(names)} segments in the end"


@test
def configuration():
    """no directory, a wrong one, another level on reload"""
    archive = os.path.join(options.work, "configuration_archive")
    cluster = Cluster("configuration", archiving(archive, "walpack.directory = ''")).start()
    cluster.mixed(5)
    cluster.switch()
    wait_for(lambda: "archiving is not configured" in cluster.log() or "is not configured" in cluster.log(),
             "no word about the missing directory")
    pid = cluster.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'archiver'")
    cluster.configure(f"walpack.directory = '{archive}'\nwalpack.level = 9\nwalpack.memory = 24MB")
    cluster.pg_ctl("reload")
    cluster.archived(cluster.switch()[-1])
    cluster.configure("walpack.level = 1")
    os.chmod(archive, 0o500)
    cluster.pg_ctl("reload")
    cluster.sql("SELECT txid_current()")
    names = cluster.switch()
    wait_for(lambda: "Permission denied" in cluster.log(), "no word about permissions")
    os.chmod(archive, 0o700)
    cluster.archived(names[-1])
    check(cluster.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'archiver'") == pid,
          "the archiver was started anew")
    # a directory that vanished is a failure, and counted
    failures = int(cluster.sql("SELECT failed_count FROM pg_stat_archiver"))
    os.rename(archive, archive + "_away")
    cluster.sql("SELECT txid_current()")
    names = cluster.switch()
    wait_for(lambda: int(cluster.sql("SELECT failed_count FROM pg_stat_archiver")) > failures, "the failure is not counted")
    check(f'Archive directory "{archive}" cannot be used' in cluster.log(), "no word about the directory")
    os.rename(archive + "_away", archive)
    cluster.archived(names[-1])
    # its settings are known where it is loaded
    cluster.psql("-c", "LOAD 'walpack'", "-c", "ALTER SYSTEM SET walpack.level = 5")
    check("outside the valid range" in cluster.psql("-c", "LOAD 'walpack'", "-c", "ALTER SYSTEM SET walpack.level = 50",
                                                    code=None), "a wrong level was accepted")
    # stopping waits for the last segments
    cluster.sql("SELECT txid_current()")
    same_as_wal(cluster, archive, names)
    cluster.stop()
    check("PANIC" not in cluster.log() and "TRAP" not in cluster.log(), "the server crashed")
    return "archiver stayed"


@test
def archive_command():
    """walpack pack as archive_command"""
    archive = os.path.join(options.work, "command_archive")
    os.makedirs(archive)
    cluster = Cluster("command", f"archive_mode = on\narchive_command = '{PACK} pack %p {archive}/%f'").start()
    cluster.mixed(5)
    names = cluster.switch()
    cluster.archived(names[-1])
    check(names[0] in listed(archive), "not under the name given")
    same_as_wal(cluster, archive, names)
    cluster.stop()
    return f"{len(names)} segments"


# ---- together with backup tools: the recipes of docs/users/walpack.md ----

def not_run(tool):
    """Why a recipe is not tried, or None; with --full it has to be."""
    if not options.full:
        return "skipped: only with --full"
    check(shutil.which(tool), f"{tool} is not installed")
    return None


def filled(cluster):
    """Rows before and after the base backup, which archived WAL has; returns what to expect."""
    cluster.mixed(3)
    cluster.sql("UPDATE plain SET k = -k WHERE id % 11 = 0")
    expected = cluster.fingerprint("SELECT * FROM plain")
    cluster.archived(cluster.switch()[-1])
    return expected


def recovered(cluster, expected):
    open(os.path.join(cluster.data, "recovery.signal"), "w").close()
    cluster.start()
    wait_for(lambda: cluster.sql("SELECT pg_is_in_recovery()") == "f", "recovery does not end")
    check(cluster.fingerprint("SELECT * FROM plain") == expected, "the table differs after recovery")
    cluster.stop()


def moved(name, cluster):
    """A cluster that is to be restored: its folder alone is made."""
    other = Cluster.__new__(Cluster)
    other.folder = os.path.join(options.work, name)
    other.data = os.path.join(other.folder, "data")
    other.wal = os.path.join(other.data, "pg_wal")
    other.env = None
    os.makedirs(other.data, mode=0o700)
    return other


@test
def pgbackrest():
    """archive-push and archive-get of packed segments, full and incremental backup, restore"""
    if not_run("pgbackrest"):
        return not_run("pgbackrest")
    folder = os.path.join(options.work, "pgbackrest")
    for d in ("repo", "log", "lock", "spool"):
        os.makedirs(os.path.join(folder, d))
    config = os.path.join(folder, "pgbackrest.conf")
    command = f"pgbackrest --config={config} --stanza=main"
    spool = os.path.join(folder, "spool")
    cluster = Cluster("pgbackrest_a", f"""
archive_mode = on
archive_command = '{PACK} pack %p {spool}/%f && {command} archive-push {spool}/%f && rm {spool}/%f'
""")
    with open(config, "w") as file:
        file.write(f"""[global]
repo1-path={folder}/repo
log-path={folder}/log
lock-path={folder}/lock
spool-path={folder}/spool
compress-type=none
log-level-console=warn
archive-async=n
archive-copy=n

[global:archive-push]
archive-header-check=n

[main]
pg1-path={cluster.data}
pg1-socket-path={cluster.folder}
pg1-user=postgres
""")
    run(*command.split(), "--no-online", "stanza-create")
    cluster.start()
    run(*command.split(), "check")
    run(*command.split(), "--type=full", "--start-fast", "backup")
    cluster.mixed(2)
    run(*command.split(), "--type=incr", "--start-fast", "backup")
    cluster.sql("DROP TABLE plain, docs, random_bytes; DROP SEQUENCE s; DROP TABLE many_1, many_2")
    expected = filled(cluster)
    names = cluster.switch()
    cluster.archived(names[-1])
    cluster.stop("immediate")
    check(not [f for f in os.listdir(spool) if SEGMENT.match(f)], "the spool is not empty")
    packed = [os.path.join(d, f) for d, _, files in os.walk(os.path.join(folder, "repo", "archive")) for f in files
              if SEGMENT.match(f)]
    check(packed and all(content(f).startswith(b"WALPACK") for f in packed if not f.endswith(".backup")), "not packed")
    run(PACK, "verify", "-q", *packed)
    other = moved("pgbackrest_b", cluster)
    run(*command.split(), f"--pg1-path={other.data}", "restore",
        f"--recovery-option=restore_command={command} archive-get %f {spool}/%f && "
        f"{RESTORE} {spool} %f %p && rm {spool}/%f")
    other.configure(f"unix_socket_directories = '{other.folder}'\narchive_mode = off\nrecovery_target_action = promote")
    recovered(other, expected)
    return f"{len(packed)} files in the repository"


@test
def barman():
    """packed segments in barman's incoming directory, backup, recovery with get-wal"""
    if not_run("barman"):
        return not_run("barman")
    folder = os.path.join(options.work, "barman")
    incoming = os.path.join(folder, "home", "main", "incoming")
    spool = os.path.join(folder, "spool")
    for d in (incoming, spool, os.path.join(folder, "conf.d")):
        os.makedirs(d)
    cluster = Cluster("barman_a", f"archive_mode = on\narchive_command = '{PACK} pack %p {incoming}/%f'")
    config = os.path.join(folder, "barman.conf")
    user = run("id", "-un").strip()
    with open(config, "w") as file:
        file.write(f"""[barman]
barman_user = {user}
barman_home = {folder}/home
barman_lock_directory = {folder}
configuration_files_directory = {folder}/conf.d
log_file = {folder}/log
compression =

[main]
description = main
conninfo = host={cluster.folder} user=postgres dbname=postgres
streaming_conninfo = host={cluster.folder} user=postgres dbname=postgres
path_prefix = {options.bindir}
backup_method = postgres
archiver = on
streaming_archiver = off
""")
    command = f"barman -c {config}"
    cluster.start()
    run(*command.split(), "switch-wal", "--force", "--archive", "main")
    run(*command.split(), "check", "main")
    run(*command.split(), "backup", "--wait", "main")
    expected = filled(cluster)
    run(*command.split(), "archive-wal", "main")
    cluster.stop("immediate")
    other = moved("barman_b", cluster)
    shutil.rmtree(other.data)
    run(*command.split(), "recover", "--get-wal", "main", "latest", other.data)
    with open(os.path.join(other.data, "postgresql.auto.conf"), "a") as file:
        file.write(f"restore_command = '{command} get-wal --output-directory {spool} main %f && "
                   f"{RESTORE} {spool} %f %p && rm {spool}/%f'\n"
                   f"unix_socket_directories = '{other.folder}'\narchive_mode = off\n"
                   "recovery_target_action = promote\nrecovery_end_command = ''\n")
    recovered(other, expected)
    return "recovered with get-wal"


# ---- the codec alone ----

@test
def codec():
    """made-up and damaged input under AddressSanitizer and UndefinedBehaviorSanitizer"""
    cluster = Cluster("codec", "wal_compression = pglz", ("--wal-segsize=1",)).start()
    cluster.mixed()
    names = cluster.switch()
    cluster.stop("immediate")
    some = random.Random(options.seed).sample(names, min(8, len(names)))
    seconds = 600 if options.full else 25
    done = subprocess.run([os.path.join(HERE, "codec_test"), str(options.seed), str(seconds),
                           *[os.path.join(cluster.wal, n) for n in some]],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds + 120)
    check(done.returncode == 0, done.stdout[-4000:])
    return done.stdout.strip()


def main():
    global options
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bindir", required=True, help="the server's programs")
    parser.add_argument("--work", help="folder for clusters")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    parser.add_argument("--full", action="store_true", help="take longer and look deeper")
    parser.add_argument("--segments", help="a pg_wal whose segments are to be packed and unpacked, too")
    parser.add_argument("--only", action="append", choices=[function.__name__ for function in tests], help="name of a test")
    options = parser.parse_args()
    options.work = options.work or tempfile.mkdtemp(prefix="walpack_test.", dir="/tmp")
    os.makedirs(options.work, exist_ok=True)
    os.umask(0o077)
    # the module alone: the program beside it has the name that the server tries first
    os.makedirs(os.path.join(options.work, "lib"), exist_ok=True)
    shutil.copy(os.path.join(ROOT, "walpack.so"), os.path.join(options.work, "lib"))
    print(f"seed {options.seed}", flush=True)
    failed = 0
    for function in tests:
        if options.only and function.__name__ not in options.only:
            continue
        start = time.time()
        try:
            remark = function()
            print(f"ok    {function.__name__:<32} {time.time() - start:5.1f} s  {remark}", flush=True)
        except (Failure, subprocess.TimeoutExpired, OSError) as error:
            failed += 1
            print(f"FAIL  {function.__name__:<32} {time.time() - start:5.1f} s", flush=True)
            print(str(error), flush=True)
            if not isinstance(error, Failure):
                traceback.print_exc(file=sys.stdout)
        # servers that a failed test has left
        for name in os.listdir(options.work):
            data = os.path.join(options.work, name, "data")
            if os.path.exists(os.path.join(data, "postmaster.pid")):
                subprocess.run([f"{options.bindir}/pg_ctl", "-s", "-D", data, "-m", "immediate", "stop"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if not failed:
        shutil.rmtree(options.work, ignore_errors=True)
    sys.exit(failed > 0)


main()
