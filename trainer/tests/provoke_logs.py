# SPDX-License-Identifier: MIT-0
"""Provoke failures for real and keep what the programs print as cases of `lingoss doctor --logs`.

`python tests/provoke_logs.py [NAME…]` as root on Linux with util-linux; writes tests/cases/logs. Each case is a script that
one or two processes run at the same time; what they print is cut to its last lines, and names of this machine are replaced.
"""

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parent / "cases" / "logs"
LINES = 45
"""Kept of each log."""
LIMIT = 150.0
"""Seconds for one case."""

GROUP = """\
import datetime, logging, os, sys, time
logging.basicConfig(level=logging.INFO, format='%(asctime)s %(levelname)s %(name)s %(message)s')
import torch, torch.distributed as dist
def group(seconds=6, **more):
    dist.init_process_group('gloo', timeout=datetime.timedelta(seconds=seconds), **more)
    logging.info('rank %d of %d joined', dist.get_rank(), dist.get_world_size())
rank = int(os.environ['RANK'])
"""


@dataclass(frozen=True)
class Case:
    """`code` is Python, or a shell command when `shell`; `evidence` is what proves the cause in its output."""

    cause: str
    evidence: str | None
    code: str
    ranks: int = 1
    shell: bool = False
    before: str = ""
    """A shell command that prepares a mount namespace of the case's own."""


PROVOKED = {
    "tmpfs-full": Case(
        "disk-full",
        "basic_ios::clear: iostream error",
        "import torch; print('saving checkpoint-50', flush=True); torch.save({'w': torch.zeros(4_000_000)}, 'full/model.pt')",
        before="mkdir full && mount -t tmpfs -o size=1m none full",
    ),
    "safetensors-full": Case(
        "disk-full",
        "No space left on device",
        "import torch; from safetensors.torch import save_file; save_file({'w': torch.zeros(4_000_000)}, 'full/a.safetensors')",
        before="mkdir full && mount -t tmpfs -o size=1m none full",
    ),
    "read-only": Case(
        "filesystem-unavailable",
        "Read-only file system",
        "open('data/status.json', 'w')",
        before="mkdir data && mount --bind data data && mount -o remount,ro,bind data",
    ),
    "cache-of-another-user": Case(
        "path-not-writable",
        "Permission denied",
        "import os\nfrom pathlib import Path\nos.setuid(1000)\nPath('private/hub/models').mkdir(parents=True)",
        before="mkdir -m 700 private && chmod 755 .",
    ),
    "loader-shm": Case(
        "shared-memory-too-small",
        "shared memory",
        "import torch\nfrom torch.utils.data import DataLoader\n"
        "class Rows:\n    def __len__(self): return 64\n    def __getitem__(self, i): return torch.zeros(300_000)\n"
        "for i, batch in enumerate(DataLoader(Rows(), 4, num_workers=2)): print('batch', i, flush=True)",
        before="mount -t tmpfs -o size=256k none /dev/shm",
    ),
    "open-files": Case(
        "process-limit-too-low",
        "Too many open files",
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "shards = [open(f'shard-{i}', 'w') for i in range(100)]",
    ),
    "host-memory": Case(
        "host-out-of-memory",
        "DefaultCPUAllocator: can't allocate memory",
        "import torch; print('loading weights', flush=True); torch.empty(1 << 46)",
    ),
    "one-of-two-joins": Case(
        "rendezvous-timeout",
        "clients joined",
        GROUP + "os.environ['WORLD_SIZE'] = '2'\ngroup(4)",
    ),
    "late-rank": Case(
        "collective-straggler",
        "Timed out waiting",
        GROUP
        + "group(6)\nfor step in range(4):\n    dist.all_reduce(torch.ones(4)); logging.info('step %d', step)\n"
        + "if rank == 1: time.sleep(15); sys.exit()\n"
        + "dist.all_reduce(torch.ones(4))",
        ranks=2,
    ),
    "barrier": Case(
        "collective-straggler",
        "failed to pass monitoredBarrier",
        GROUP + "group(30)\nif rank == 1: time.sleep(12); sys.exit()\n"
        "dist.monitored_barrier(timeout=datetime.timedelta(seconds=4), wait_all_ranks=True)",
        ranks=2,
    ),
    "disk-full-then-peer": Case(
        "disk-full",
        "No space left on device",
        GROUP + "group(8)\ndist.barrier()\n"
        "if rank == 1:\n    time.sleep(1)\n    open('full/state', 'wb').write(b'x' * (2 << 20))\n"
        "dist.all_reduce(torch.ones(4)); logging.info('reduced')",
        ranks=2,
        before="mkdir -p full && mount -t tmpfs -o size=1m none full",
    ),
    "port": Case(
        "port-in-use",
        "EADDRINUSE",
        GROUP
        + "import socket\ntaken = socket.socket(); taken.bind(('', int(os.environ['MASTER_PORT']))); taken.listen()\n"
        "group(5)",
    ),
    "master-name": Case(
        "name-resolution-failed",
        "Name or service not known",
        GROUP + "os.environ.update(MASTER_ADDR='sft-0.sft-headless', WORLD_SIZE='2', RANK='1')\ngroup(3)",
    ),
    "gloo-interface": Case(
        "network-interface-wrong",
        "Unable to find address for",
        GROUP + "os.environ['GLOO_SOCKET_IFNAME'] = 'eth7'\ngroup(5)",
    ),
    "hub-offline": Case(
        "hub-unreachable",
        "OfflineModeIsEnabled",
        "import os; os.environ.update(HF_HUB_OFFLINE='1', HF_HOME='hf')\n"
        "from huggingface_hub import snapshot_download\nsnapshot_download('acme-ai/base-20b')",
    ),
    "hub-offline-transformers": Case(
        "hub-unreachable",
        "LocalEntryNotFoundError",
        "import os; os.environ.update(HF_HUB_OFFLINE='1', HF_HOME='hf')\n"
        "from transformers import AutoConfig\nAutoConfig.from_pretrained('acme-ai/base-20b')",
    ),
    "hub-no-route": Case(
        "hub-unreachable",
        "thrown while requesting HEAD https://huggingface.co",
        "import os; os.environ.update(HF_HOME='hf')\n"
        "from huggingface_hub import hf_hub_download\nhf_hub_download('acme-ai/base-20b', 'config.json')",
    ),
    "hub-gated": Case(
        "hub-access-denied",
        "GatedRepoError: 403",
        "import os, threading, http.server\n"
        "class Gate(http.server.BaseHTTPRequestHandler):\n"
        "    def do_HEAD(self):\n        self.send_response(403); self.send_header('X-Error-Code', 'GatedRepo')\n"
        "        self.send_header('Content-Length', '0'); self.end_headers()\n"
        "    do_GET = do_HEAD\n    def log_message(self, *a): pass\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), Gate); threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "os.environ.update(HF_ENDPOINT=f'http://127.0.0.1:{server.server_port}', HF_HOME='hf')\n"
        "from huggingface_hub import hf_hub_download\nhf_hub_download('acme-ai/gated-20b', 'config.json')",
    ),
    "vocabulary": Case(
        "vocabulary-download-failed",
        "vocab file",
        "import os; os.environ.pop('TIKTOKEN_ENCODINGS_BASE', None); os.environ['TIKTOKEN_RS_CACHE_DIR'] = os.getcwd()\n"
        "from openai_harmony import load_harmony_encoding\nload_harmony_encoding('HarmonyGptOss')",
    ),
    "safetensors-cut": Case(
        "checkpoint-incomplete",
        "SafetensorError",
        "import torch; from safetensors.torch import save_file, load_file\n"
        "save_file({'w': torch.zeros(4000)}, 'adapter_model.safetensors'); os = __import__('os')\n"
        "os.truncate('adapter_model.safetensors', 900); print('resuming from checkpoint-50', flush=True)\n"
        "load_file('adapter_model.safetensors')",
    ),
    "dcp-metadata": Case(
        "checkpoint-incomplete",
        "CheckpointException: ",
        "import torch, torch.distributed.checkpoint as dcp\n"
        "state = {'w': torch.zeros(10)}; dcp.save(state, checkpoint_id='checkpoint-50')\n"
        "__import__('os').remove('checkpoint-50/.metadata'); dcp.load(state, checkpoint_id='checkpoint-50')",
    ),
    "lora-rank": Case(
        "checkpoint-shape-mismatch",
        "size mismatch for",
        "import torch\nmodel = torch.nn.Linear(8, 16); other = torch.nn.Linear(8, 32)\nmodel.load_state_dict(other.state_dict())",
    ),
    "nan-gradient": Case(
        "loss-not-finite",
        "is non-finite",
        "import torch\nmodel = torch.nn.Linear(4, 1)\n"
        "for step in range(3):\n    loss = model(torch.full((2, 4), 10.0 ** (step * 30))).pow(2).sum(); loss.backward()\n"
        "    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)\n"
        "    print({'loss': 1.0, 'grad_norm': round(float(norm), 3)}, flush=True)",
    ),
    "no-compiler": Case(
        "compiler-missing",
        "InvalidCxxCompiler",
        "import os; os.environ.update(PATH='/nowhere', TORCHINDUCTOR_CACHE_DIR='ind')\nos.environ.pop('CXX', None)\nimport torch\n"
        "torch.compile(lambda x: x.sin() + 1)(torch.ones(8))",
    ),
    "flash-attention": Case(
        "attention-unsupported",
        "FlashAttention2 has been toggled on",
        "from transformers import AutoModelForCausalLM, LlamaConfig\n"
        "config = LlamaConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, vocab_size=50)\n"
        "AutoModelForCausalLM.from_config(config, attn_implementation='flash_attention_2')",
    ),
    "moved-name": Case(
        "dependency-mismatch",
        "cannot import name",
        "from transformers import AutoModelForVision2SeqLegacy",
    ),
    "rollout-server": Case(
        "rollout-server-unreachable",
        "Connection refused",
        "import logging; logging.basicConfig(level=logging.INFO)\n"
        "import trl.generation.vllm_client as client\n"
        "client.is_vllm_available = lambda *versions, **more: True  # only the server needs it\n"
        "client.VLLMClient('http://127.0.0.1:9', connection_timeout=3.0)",
    ),
    "sigterm": Case(
        "stopped-by-signal",
        "death signal",
        "echo 'import time; print(\"step 1\", flush=True); time.sleep(60)' > work.py; "
        "{python} -m torch.distributed.run --nproc-per-node 1 work.py & launcher=$!; "
        "while [ ! -e started ] && kill -0 $launcher; do sleep 1; [ $((i=i+1)) -gt 12 ] && touch started; done; "
        "kill -TERM $launcher; wait $launcher",
        shell=True,
    ),
    "killed-without-a-word": Case(
        "unknown",
        "exitcode: -9",
        "echo 'import os; print(\"step 1\", flush=True); os.kill(os.getpid(), 9)' > work.py; "
        "{python} -m torch.distributed.run --nproc-per-node 1 work.py",
        shell=True,
    ),
    "healthy-ranks": Case(
        "none",
        None,
        GROUP + "group(30)\nfor step in range(12):\n    dist.all_reduce(torch.ones(4))\n"
        "    print({'loss': round(2 / (step + 1), 4), 'grad_norm': 0.5, 'epoch': step / 12}, flush=True)",
        ranks=2,
    ),
    "healthy-after-retry": Case(
        "none",
        None,
        "import logging, errno; logging.basicConfig(format='%(asctime)s %(levelname)s %(message)s', level=logging.INFO)\n"
        "for attempt in range(3):\n    try:\n        if attempt < 2: raise OSError(errno.EIO, 'Input/output error')\n"
        "    except OSError as error: logging.warning('attempt %d: %s', attempt, error)\n"
        "for step in range(6): logging.info('step %d loss=%.4f', step, 2 / (step + 1))\nlogging.info('saved checkpoint-6')",
    ),
}


def provoke(name: str, case: Case) -> dict[str, object]:
    """Run one case and write its logs; returns its row."""
    with tempfile.TemporaryDirectory(prefix="lingoss-provoke-") as scratch:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        processes = []
        for rank in range(case.ranks):
            if case.shell:
                command = case.code.replace("{python}", sys.executable)
            else:
                (Path(scratch) / f"work{rank}.py").write_text(case.code)
                command = f"{sys.executable} work{rank}.py"
            if case.before:
                command = f"unshare --mount sh -c '{case.before} ; {command}'"
            environment = {
                **{
                    key: value
                    for key, value in os.environ.items()
                    if key in ("PATH", "LANG", "TIKTOKEN_ENCODINGS_BASE")
                },
                "RANK": str(rank),
                "WORLD_SIZE": str(case.ranks),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "HOME": scratch,
                "OMP_NUM_THREADS": "1",
                "HF_HUB_DISABLE_TELEMETRY": "1",
            }
            log = (Path(scratch) / f"rank-{rank}.log").open("wb")
            processes.append(
                subprocess.Popen(
                    command, shell=True, cwd=scratch, env=environment, stdout=log, stderr=log, start_new_session=True
                )
            )
        end = time.monotonic() + LIMIT
        for process in processes:
            try:
                process.wait(timeout=max(1.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        folder = CASES / name
        folder.mkdir(parents=True, exist_ok=True)
        first = None
        files = []
        for rank in range(case.ranks):
            text = _neutral((Path(scratch) / f"rank-{rank}.log").read_text(errors="replace"), scratch)
            lines = text.splitlines()[-LINES:]
            file = f"rank-{rank}.log"
            (folder / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
            files.append(file)
            found = next((n for n, line in enumerate(lines, 1) if case.evidence and case.evidence in line), None)
            if found and (first is None or case.cause == "disk-full"):
                first = {"file": file, "line": found}
    if case.evidence and not first:
        print(f"{name}: '{case.evidence}' was not printed, see {folder}", file=sys.stderr)
    return {"id": name, "files": files, "cause": case.cause, "first": first, "evidence": case.evidence}


def _neutral(text: str, scratch: str) -> str:
    text = text.replace(scratch, "/scratch").replace(socket.gethostname(), "node-1")
    text = re.sub(r"/\S*?/site-packages", "/opt/venv/lib/python3.11/site-packages", text)
    text = re.sub(r"/\S*?/lib/python3\.\d+/(?!site-packages)", "/usr/lib/python3.11/", text)
    return re.sub(r"/\S*?/bin/python[\d.]*", "/opt/venv/bin/python", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*PROVOKED, []], help="only these")
    names = parser.parse_args().names or list(PROVOKED)
    table = CASES / "own_log_cases.jsonl"
    rows = {row["id"]: row for row in map(json.loads, table.read_text().splitlines())} if table.exists() else {}
    for name in names:
        rows[name] = provoke(name, PROVOKED[name])
        print(rows[name], flush=True)
    table.write_text("".join(json.dumps(rows[name]) + "\n" for name in sorted(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
