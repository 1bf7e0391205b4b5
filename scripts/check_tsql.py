#!/usr/bin/env python3
"""Microsoft's own parser (ScriptDom) over T-SQL files, without a server.

usage: check_tsql.py [FILE...]      default: every .sql file under sql/mssql

Prints `file:line: message`. Exit 0: everything parses; 1: something does not; 3: the parser could not be installed or run,
so NOTHING WAS CHECKED.

The parser comes in the Python package `maxdop`, a single program without further needs, which is installed once into a
virtual environment under $CARGO_TARGET_DIR or target/. Each file is parsed as compatibility level 130 (the oldest that
chokaq runs on) and as the newest. A broken text is tried first, so that a parser that finds nothing is noticed.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PACKAGE = "maxdop==0.1.3"
VERSIONS = ("2016", "2025")
REPOSITORY = Path(__file__).resolve().parent.parent
BROKEN = "SET NOCOUNT ON;\nSELECT h.Seq\nFROM [chokaq].JobsHot AS h WITH (INDEX(PK_JobsHot)\nWHERE h.Seq = 1;\n"

FAULT = re.compile(r"maxdop: (.+?): could not be parsed.*? (\d+):\d+: (.+)")
# The program is made to format, which is none of our business.
STYLE = re.compile(r"maxdop: .+ would be reformatted$")


class NotChecked(Exception):
    """Nothing is known about the files."""


def installed() -> Path:
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    home = target / "check_tsql" / PACKAGE.replace("==", "-")
    program = home / "bin" / "maxdop"
    if not program.exists():
        print(f"installing {PACKAGE} into {home}", file=sys.stderr)
        try:
            venv.create(home, with_pip=True, clear=True)
            command = [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", PACKAGE]
            subprocess.run(command, check=True)
        except subprocess.CalledProcessError as error:
            raise NotChecked(f"{PACKAGE} cannot be installed: pip ended with {error.returncode}") from error
        except OSError as error:
            raise NotChecked(f"{PACKAGE} cannot be installed: {error}") from error
    return program


def faults(program: Path, files: list[Path], version: str) -> list[str]:
    command = [program, "--check", "--parser-version", version, *files]
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    except OSError as error:
        raise NotChecked(f"{program} cannot be run: {error}") from error
    found = []
    for line in (done.stdout + done.stderr).splitlines():
        if match := FAULT.match(line):
            found.append(f"{match[1]}:{match[2]}: {match[3]}")
        elif not STYLE.match(line):
            raise NotChecked(f"the parser says: {line}")
    if done.returncode not in (0, 1) or (done.returncode == 1 and not (done.stdout + done.stderr)):
        raise NotChecked(f"the parser ended with {done.returncode}")
    return found


def notices_a_fault(program: Path, version: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        broken = Path(folder) / "broken.sql"
        broken.write_text(BROKEN, encoding="utf-8")
        return any(fault.startswith(f"{broken}:4: ") for fault in faults(program, [broken], version))


def main() -> int:
    every = sorted((REPOSITORY / "sql" / "mssql").rglob("*.sql"))
    files = [Path(name) for name in sys.argv[1:]] or [Path(os.path.relpath(file)) for file in every]
    if missing := [str(file) for file in files if not file.is_file()]:
        raise NotChecked(f"no such file: {', '.join(missing)}")
    program = installed()
    found = set()
    for version in VERSIONS:
        if not notices_a_fault(program, version):
            raise NotChecked(f"the parser of {version} did not notice a planted fault")
        found.update(faults(program, files, version))
    for fault in sorted(found):
        print(fault)
    print(f"{len(files)} files, {len(found)} faults")
    return 1 if found else 0


try:
    sys.exit(main())
except NotChecked as problem:
    print(f"!!! NO T-SQL WAS CHECKED: {problem}", file=sys.stderr)
    sys.exit(3)
