# SPDX-License-Identifier: MIT-0
"""Lines as the programs print them, written from their sources: what each means, and harmless ones that look alike."""

PHRASES = {
    "driver-too-old": [
        "RuntimeError: CUDA driver initialization failed: CUDA driver version is insufficient for CUDA runtime version",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, please update your driver to a newer version, "
        "or use an earlier cuda container: unknown.",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW",
        "CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 12040).",
    ],
    "efa-unavailable": [
        "host:1:1 [0] NCCL WARN NET/OFI Failed to initialize rdma protocol",
        "host:1:1 [0] find_ofi_provider:543 NCCL WARN NET/OFI Couldn't find any optimal provider",
        "libfabric:12:1747438790::core:core:fi_getinfo_():1392<warn> fi_getinfo: provider efa returned -61 (No data available)",
        "host:1:1 [0] nccl_net_ofi_create_plugin:204 NCCL WARN NET/OFI Unable to find a protocol that worked.  Failing initialization.",
    ],
    "process-limit-too-low": [
        "OSError: [Errno 24] Too many open files: '/fsx/data/part-0007.arrow'",
        "node1:12:40 [3] misc/socket.cc:321 NCCL WARN Call to accept failed : Too many open files",
        "RuntimeError: received 0 items of ancdata",
        "libfabric:99:1700000001:efa:mr:efa_mr_reg_impl():850<warn> Unable to register MR: Cannot allocate memory",
        "node1:4:9 [0] misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
        "RuntimeError: can't start new thread",
    ],
    "network-interface-wrong": [
        "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. "
        "Unable to find address for: eth1",
        "node1:3:3 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
        "node1:3:9 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 172.17.0.1<43921> failed : Software caused "
        "connection abort, No route to host",
        "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error",
        "[W ProcessGroupGloo.cpp:721] Warning: Unable to resolve hostname to a (local) address. Using the loopback address as "
        "fallback. Manually set the network interface to bind to with GLOO_SOCKET_IFNAME.",
    ],
    "collective-straggler": [
        "RuntimeError: Ranks 3 failed to pass monitoredBarrier in 300000 ms",
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv "
        "operation to complete",
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint("
        "SequenceNumber=9, OpType=BARRIER)",
        "[rank0]:[F1206 22:30:12.715700678 ProcessGroupNCCL.cpp:1553] [PG ID 0 PG GUID 0(default_pg) Rank 0] "
        "[PG ID 0 PG GUID 0(default_pg) Rank 0] Terminating the process after attempting to dump debug info, due to "
        "ProcessGroupNCCL watchdog hang. watchdog got stuck for 480seconds without making progress",
    ],
    "shared-memory-too-small": [
        "RuntimeError: unable to write to file </torch_1394_2747491098_0>",
        "RuntimeError: unable to open shared memory object </torch_16550_876314950> in read-write mode: No such file or directory (2)",
        "RuntimeError: unable to allocate shared memory(shm) for file </torch_1_2_3>: Resource temporarily unavailable (11)",
        "node1:3:9 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Dn2Xaz to 33030532 bytes: "
        "No space left on device (28)",
        "WARNING services.py:2009 -- WARNING: The object store is using /tmp instead of /dev/shm because /dev/shm has only "
        "67108864 bytes available.",
        "RuntimeError: DataLoader worker (pid 125) is killed by signal: Bus error.",
    ],
    "gpu-out-of-memory": [
        "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 3 has a total capacity of 44.39 GiB",
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 22.20 GiB total capacity)",
        "RuntimeError: CUDA error: out of memory",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "node1:1:2 [0] NCCL WARN Cuda failure 2 'out of memory'",
    ],
    "kv-cache-does-not-fit": [
        "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache "
        "(21024). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        "ValueError: To serve at least one request with the models's max seq len (131072), (6.00 GiB KV cache is needed, which is "
        "larger than the available KV cache memory (2.11 GiB).",
        "ValueError: Free memory on device cuda:0 (3.2/44.39 GiB) on startup is less than desired GPU memory utilization (0.9, 39.95 GiB).",
        "AssertionError: Error in memory profiling. Initial free memory 21.2 GiB, current free memory 22.0 GiB.",
    ],
    "host-out-of-memory": [
        "    Reason:       OOMKilled",
        "[ 9123.1] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=-997",
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        "(raylet) [2026-05-01 10:00:00,000 E 20 20] node_manager.cc:3041: 1 Workers (tasks / actors) killed due to memory pressure (OOM)",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 42949672960 bytes. Error code 12 (Cannot allocate memory)",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM Killed.",
    ],
    "ray-node-lost": [
        "(raylet) The node with node id: c118 and address: 10.0.3.192 and node name: 10.0.3.192 has been marked dead because the "
        "detector has missed too many heartbeats from it.",
        "ray.exceptions.NodeDiedError: Task failed because the node it was running on is dead or unavailable.",
        "[2026-01-02 13:13:46,502 C 2116 2116] (raylet) node_manager.cc:999: [Timeout] Exiting because this node manager has "
        "mistakenly been marked as dead by the GCS",
        "The actor died because its node has died. Node Id: 63e1",
    ],
    "ray-unschedulable": [
        "ValueError: Total available GPUs 4 is less than total desired GPUs 8",
        "WARNING 04-01 02:45:50 ray_utils.py:320] The number of required GPUs exceeds the total number of available GPUs in the "
        "placement group.",
        "INFO 04-01 02:47:00 ray_utils.py:214] Waiting for creating a placement group of specs for 70 seconds. specs=[{'GPU': 1.0}]",
        "(autoscaler +5s) Error: No available node types can fulfill resource request {'GPU': 4.0}.",
        "ray.exceptions.ActorUnschedulableError: The actor is not schedulable",
    ],
    "ray-version-mismatch": [
        "RuntimeError: Version mismatch: The cluster was started with:",
        "RuntimeError: Changing the ray version is not allowed: ",
    ],
    "ray-submission-failed": [
        "  message: 'Job submission has failed. Reason: BackoffLimitExceeded. Message: Job has reached the specified backoff limit'",
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='grpo-head-svc', port=8265): Max retries exceeded with url: "
        "/api/version (Caused by NewConnectionError('Failed to establish a new connection: [Errno 111] Connection refused'))",
        "RuntimeError: Request failed with status code 500: No available agent to submit job, please try again later..",
    ],
    "disk-full": [
        "OSError: [Errno 122] Disk quota exceeded: '/fsx/runs/checkpoint-50/optimizer.bin'",
        "RuntimeError: [enforce fail at inline_container.cc:603] . unexpected pos 512 vs 406",
        "safetensors_rust.SafetensorError: Error while serializing: I/O error: No space left on device (os error 28)",
        "(raylet) file_system_monitor.cc:111: /tmp/ray/session is over 95% full, available space: 11.0 GB; capacity: 499 GB.",
        "tar: write error: No space left on device",
    ],
    "filesystem-unavailable": [
        "OSError: [Errno 5] Input/output error: '/fsx/runs/sft/metrics.jsonl'",
        "OSError: [Errno 30] Read-only file system: '/fsx/runs/sft'",
        "OSError: [Errno 116] Stale file handle",
        "OSError: [Errno 107] Transport endpoint is not connected: '/fsx'",
        "[Fri Oct 16 14:44:17 2026] LustreError: 167-0: fsx-MDT0000-mdc: This client was evicted by fsx-MDT0000; in progress "
        "operations using this service will fail.",
        "OSError: [Errno 108] Cannot send after transport endpoint shutdown: '/fsx/hf'",
    ],
    "volume-mount-failed": [
        "Output: mount: /var/lib/kubelet/pods/x: wrong fs type, bad option, bad superblock on fs-1@tcp:/fsx, missing codepage",
        '  Warning  FailedMount  2s (x5 over 10s)  kubelet  MountVolume.MountDevice failed for volume "pv" : driver name '
        "fsx.csi.aws.com not found in the list of registered CSI drivers",
        '  Warning  FailedAttachVolume  4s  attachdetach-controller  Multi-Attach error for volume "pvc-1" Volume is already used',
        "mount.lustre: mount fs-1@tcp:/abc at /mnt failed: Input/output error",
    ],
    "hub-access-denied": [
        "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1)",
        "OSError: You are trying to access a gated repo.",
        "Access to model meta/llama is restricted and you are not in the authorized list.",
        "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error. (Request ID: Root=1)",
        "Invalid credentials in Authorization header",
        "httpx.HTTPStatusError: Client error '401 Unauthorized' for url 'https://huggingface.co/api/whoami-v2'",
    ],
    "hub-unreachable": [
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.",
        "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models/x: offline mode is enabled.",
        "requests.exceptions.ConnectionError: (MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries "
        'exceeded with url: /x (Caused by NameResolutionError(\\"Failed to resolve \'huggingface.co\'\\"))"))',
        "ConnectionError: Couldn't reach 'HuggingFaceH4/Multilingual-Thinking' on the Hub (LocalEntryNotFoundError)",
    ],
    "vocabulary-download-failed": [
        "openai_harmony.HarmonyError: error downloading or loading vocab file: failed to download or load vocab file",
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='openaipublic.blob.core.windows.net', port=443): Max retries "
        "exceeded with url: /encodings/o200k_base.tiktoken",
    ],
    "mxfp4-kernels-missing": [
        "MXFP4 quantization requires triton >= 3.4.0 and kernels installed, we will default to dequantizing the model to bf16",
        "ModuleNotFoundError: No module named 'triton_kernels'",
        "ImportError: cannot import name 'routing' from 'triton_kernels.routing'",
    ],
    "attention-unsupported": [
        "AssertionError: Sinks are only supported in FlashAttention 3",
        "NotImplementedError: FlashInfer backend currently does not support attention sinks",
        "ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following error: Flash Attention 2 is "
        "not available on CPU.",
        "ValueError: GptOssForCausalLM does not support an attention implementation through torch.nn.functional."
        "scaled_dot_product_attention yet.",
        "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
    ],
    "rollout-server-unreachable": [
        "[rank0]:[W710 16:45:37.9 socket.cpp:464] [c10d] waitForInput: poll for socket SocketImpl(fd=111, addr=[localhost]:42404, "
        "remote=[::ffff:10.0.0.7]:51216) returned 0, likely a timeout",
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='vllm-rollout', port=8000): Max retries exceeded with url: "
        "/get_world_size/ (Caused by NewConnectionError('Connection refused'))",
        "[W715 09:24:02.297720466 TCPStore.cpp:330] [c10d] TCP client failed to connect/validate to host 0.0.0.0:51216 - retrying "
        "(try=0, timeout=300000ms, delay=59547ms): The client socket has timed out after 300000ms while trying to connect to "
        "(0.0.0.0, 51216).",
    ],
    "rendezvous-timeout": [
        "RuntimeError: connect() timed out. Original timeout was 60000 ms.",
        "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 12/16 clients joined.",
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (sft-0, 29500).",
        "RuntimeError: Timed out initializing process group in store based barrier on rank: 3, for key: store_based_barrier_key:1",
        "torch.distributed.DistStoreError: wait timeout after 600000ms, keys: /default_pg/0//cuda//0",
    ],
    "stopped-by-signal": [
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 61 got signal: 15",
        "W0730 09:15:03.388000 118 torch/distributed/elastic/agent/server/api.py:723] Received Signals.SIGTERM death signal, "
        "shutting down workers",
        "slurmstepd: error: *** STEP 811.0 ON node7 CANCELLED AT 2026-03-01T10:00:00 DUE TO PREEMPTION ***",
        "INFO Received SIGUSR1, saving a checkpoint and stopping",
    ],
    "checkpoint-incomplete": [
        "FileNotFoundError: [Errno 2] No such file or directory: '/fsx/runs/sft/checkpoint-50/trainer_state.json'",
        "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
        "[WARNING] [engine.py:1656:_get_all_zero_checkpoints] The following zero checkpoints paths are missing: ['x/zero_pp_rank_8']",
        "ValueError: Can't find a valid checkpoint at /fsx/runs/sft/checkpoint-150",
    ],
    "checkpoint-shape-mismatch": [
        "        size mismatch for lm_head.weight: copying a param with shape torch.Size([201088, 2880]) from checkpoint, the shape in "
        "current model is torch.Size([200064, 2880]).",
        "ValueError: Size mismatch between saved torch.Size([16, 8]) and current: torch.Size([32, 8]) for lora_A",
    ],
    "loss-not-finite": [
        "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
        "ValueError: loss is not finite at step 120",
        "step 41 loss: nan grad_norm: nan",
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
        "RuntimeError: The total norm of order 2.0 for gradients from `parameters` is non-finite, so it cannot be clipped.",
    ],
    "path-not-writable": [
        "PermissionError: [Errno 13] Permission denied: '/home/user/.triton/cache/x'",
        "OSError: PermissionError at /fsx/runs when downloading. Check cache directory permissions.",
        "mkdir: cannot create directory '/fsx/runs': Permission denied",
    ],
    "image-pull-failed": [
        '  Warning  Failed  3s  kubelet  Failed to pull image "x:1": rpc error: code = NotFound desc = failed to pull and unpack image',
        '  Normal   BackOff  2s  kubelet  Back-off pulling image "x:1"',
        "  Warning  Failed  3s  kubelet  Error: InvalidImageName",
        "toomanyrequests: You have reached your unauthenticated pull rate limit.",
    ],
    "node-resources-insufficient": [
        "  Warning  FailedScheduling  3s  default-scheduler  0/4 nodes are available: 4 Insufficient vpc.amazonaws.com/efa.",
        "  Warning  UnexpectedAdmissionError  3s  kubelet  Allocate failed due to requested number of devices unavailable for "
        "nvidia.com/gpu. Requested: 4, Available: 3, which is unexpected",
        "  Normal  NotTriggerScaleUp  3s  cluster-autoscaler  pod didn't trigger scale-up: 1 max node group size reached",
    ],
    "quota-pending": [
        "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu in flavor p5, 8 more needed",
        "  Warning  Pending  4m  kueue-admission  couldn't assign flavors to pod set job: resource cpu unavailable in ClusterQueue",
        'Error from server (Forbidden): pods "sft-0" is forbidden: failed quota: team: must specify limits.memory',
    ],
    "pod-security-violation": [
        'Error creating: pods "sft-0" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false '
        '(container "x" must set securityContext.allowPrivilegeEscalation=false)',
        'Error: container has runAsNonRoot and image will run as root (pod: "x", container: y)',
    ],
    "pod-evicted": [
        "  Warning  Evicted  3s  kubelet  Pod ephemeral local storage usage exceeds the total limit of containers 10Gi.",
        '  Warning  Evicted  3s  kubelet  Usage of EmptyDir volume "tmp" exceeds the limit "20Gi".',
        "Status: Failed  Reason: Evicted  Message: The node was low on resource: memory. Threshold quantity: 100Mi",
    ],
    "gpu-fault": [
        "[ 92.1] NVRM: Xid (PCI:0000:53:00): 79, pid=1234, name=python3, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:3b:00): 94, pid=1, name=python, Contained: SM (0x1). RST: No, D-RST: No",
        "Unable to determine the device handle for GPU 0000:53:00.0: GPU is lost. Reboot the system to recover this GPU",
        "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution",
        "I1118 health.go:1 'nvidia.com/gpu' device marked unhealthy: GPU-1 due to XidCriticalError: Xid=48",
    ],
    "node-lost": [
        "  Warning  NodeNotReady  3s  node-controller  Node is not ready",
        "Kubelet stopped posting node status.",
        "  Normal  TaintManagerEviction  3s  taint-eviction-controller  Marking for deletion Pod lab/sft-0",
        "sagemaker.amazonaws.com/node-health-status: UnschedulablePendingReplacement",
    ],
    "credentials-rejected": [
        "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
        "botocore.exceptions.ClientError: An error occurred (ExpiredToken) when calling the PutObject operation: The provided token "
        "has expired.",
        "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the ListObjectsV2 operation: Access Denied",
        "An error occurred (RequestTimeTooSkewed) when calling the GetObject operation: The difference between the request time and "
        "the current time is too large.",
    ],
    "port-in-use": [
        "OSError: [Errno 98] Address already in use",
        "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
        "RuntimeError: The server socket has failed to listen on any local network address. port: 29500, code: -98, name: EADDRINUSE",
    ],
    "name-resolution-failed": [
        "socket.gaierror: [Errno -2] Name or service not known",
        "[W socket.cpp:663] [c10d] The IPv6 network addresses of (sft-0.sft, 29500) cannot be retrieved (gai error: -2 - Name or "
        "service not known).",
        "Failed to look up service: dial tcp: lookup grpo-head-svc on 10.100.0.10:53: no such host",
    ],
    "dependency-mismatch": [
        "ImportError: /x/flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi",
        "ImportError: cannot import name 'AutoModelForVision2Seq' from 'transformers'",
        "ModuleNotFoundError: No module named 'trl.extras'",
        "RuntimeError: operator torchvision::nms does not exist",
        "ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by x.so)",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "TypeError: GRPOConfig.__init__() got an unexpected keyword argument 'max_prompt_length'",
    ],
    "compiler-missing": [
        "RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set triton.knobs.build.impl.",
        "/tmp/x/cuda_utils.c:5:10: fatal error: Python.h: No such file or directory",
        "FileNotFoundError: [Errno 2] No such file or directory: 'gcc'",
        "torch._inductor.exc.InductorError: InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx",
        "FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'",
    ],
    "unknown": [
        "Fatal Python error: Segmentation fault",
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "(EngineCore pid=1) ERROR 10-25 07:12:43 [core.py:708] EngineCore failed to start.",
        "E1119 09:47:02.715000 28705 site-packages/torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: 1) "
        "local_rank: 0 (pid: 60897) of binary: /usr/bin/python3",
        "  Warning  BackOff  3s (x4 over 20s)  kubelet  Back-off restarting failed container trainer in pod sft-0",
    ],
}

HARMLESS = [
    "asyncio.exceptions.CancelledError",
    '(APIServer pid=1) INFO:     10.42.3.7:40218 - "GET /health HTTP/1.1" 200 OK',
    "[rank0]:[W1031 06:57:08.1 ProcessGroupNCCL.cpp:1538] Warning: WARNING: destroy_process_group() was not called before program exit",
    "node1:1:1 [7] graph/search.cc:765 NCCL WARN Could not find a path for pattern 4, falling back to simple order",
    "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
    "WARNING 10-25 07:12:41 [cuda.py:1] To get better performance install flash-attn; using sdpa",
    "[WARNING] async_io requires the dev libaio .so object and headers but these were not found.",
    '  Warning  Unhealthy  3s  kubelet  Readiness probe failed: Get "http://10.0.0.1:8000/health": connection refused',
    "INFO 10-25 07:12:41 [gpu_worker.py:298] Available KV cache memory: 21.17 GiB",
    "{'loss': 0.4, 'grad_norm': 1.1, 'learning_rate': 1e-05, 'entropy': 0.3, 'epoch': 0.2}",
    "Setting `pad_token_id` to `eos_token_id`:199999 for open-end generation.",
    "Some weights of the model were not used when initializing: ['score.weight']",
    "node1:1:1 [0] NCCL INFO NET/OFI Selected Provider is efa (found 4 nics)",
    "Error displaying widget: model not found",
    "W0730 09:15:03.388000 118 torch/distributed/run.py:803] Setting OMP_NUM_THREADS environment variable for each process to be 1",
    "(autoscaler +17s) Tip: use `ray status` to view detailed cluster status.",
    "INFO Preemption is not helpful for scheduling",
    "The tokenizer has new PAD/BOS/EOS tokens that differ from the model config and generation config.",
    "INFO saved checkpoint-50 in 12.1 s, 3 of 5 kept, 41 GB free",
]
