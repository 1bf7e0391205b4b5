#!/usr/bin/env python3
"""The parameters that the headers of SQL files declare, for an offline check: `file<TAB>@a int, @b nvarchar(255)`.

usage: tsql_params.py FILE... > params.tsv
A header line `-- @name type` declares one; what follows a comma outside parentheses explains it. A procedure declares its
own: none are given for it.
"""

import re
import sys
from pathlib import Path

DECLARATION = re.compile(r"^-- (@\w+) (\w+(?:\([^)]*\))?)")
PROCEDURE = re.compile(r"^\s*CREATE\s+(OR\s+ALTER\s+)?PROC", re.IGNORECASE | re.MULTILINE)


def parameters(text: str) -> list[str]:
    found = []
    if PROCEDURE.search(text):
        return found
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        if match := DECLARATION.match(line):
            found.append(f"{match[1]} {match[2]}")
    return found


for name in sys.argv[1:]:
    path = Path(name)
    print(f"{path.stem}\t{', '.join(parameters(path.read_text(encoding='utf-8')))}")
