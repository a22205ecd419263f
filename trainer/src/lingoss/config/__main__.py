# SPDX-License-Identifier: MIT-0
"""`python -m lingoss.config` prints docs/configuration.md; with a stage name it prints that stage's JSON Schema."""

import json
import sys

from lingoss.config.docs import markdown, schema

if len(sys.argv) > 1:
    print(json.dumps(schema(sys.argv[1]), indent=2, ensure_ascii=False))
else:
    print(markdown(), end="")
