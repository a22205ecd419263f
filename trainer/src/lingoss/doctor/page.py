# SPDX-License-Identifier: MIT-0
"""docs/troubleshooting.md, made of the causes: `python -m lingoss.doctor.page > docs/troubleshooting.md`."""

from lingoss.doctor.cause import LAYERS, Cause, causes
from lingoss.doctor.logs.diagnosis import NONE, UNKNOWN

_TITLES = {
    "machine": "Nodes, drivers, disks and the cluster",
    "program": "What a program stops with",
    "waiting": "Waiting in vain",
    "sign": "Signs without a cause",
}
_HEAD = """\
<!-- SPDX-License-Identifier: MIT-0 -->
<!-- Made by `make docs` from trainer/src/lingoss/doctor/causes: edit those. -->
# Troubleshooting

```
lingoss doctor --root FOLDER     checks this machine or pod
lingoss doctor --logs FILE...    names the first failure in the logs of all ranks, pods and nodes
```

Give `--logs` everything at once: the logs of all ranks, `kubectl get events`, `kubectl describe pod`, the node's kernel log.
The loudest error is mostly a consequence: when one rank dies, all the others report a time-out of NCCL. So the failures are put on
one time line, and one is passed over when something below it in this order was seen before: a **machine** that failed explains the
**program** that ended, and that explains those that were found **waiting**. `unknown` means that the text does not say why.
"""


def page() -> str:
    """The whole page as Markdown."""
    parts = [_HEAD]
    for layer, title in _TITLES.items():
        of_layer = [cause for cause in causes().values() if cause.layer == LAYERS.index(layer)]
        parts.append(f"\n## {title}\n" + "".join(_section(cause) for cause in of_layer))
    return "".join(parts)


def _section(cause: Cause) -> str:
    text = f"\n### {cause.name}\n\n{cause.meaning}\n\n**What to do.** {cause.remedy}\n"
    if cause.name in (NONE, UNKNOWN) or not cause.patterns:
        return text
    examples = "".join(f"    {pattern.match.pattern}\n" for pattern in cause.patterns[:4])
    return f"{text}\nSeen in lines like (as regular expressions):\n\n{examples}"


if __name__ == "__main__":
    print(page(), end="")
