#!/bin/sh
# SPDX-License-Identifier: MIT-0
# Removes from the library folder $1 what training and serving on a CPU never load. The index has no torch for CPUs alone:
# its wheel is linked to CUDA libraries that must be there to import it; these are the ones that it does not need.
set -eu
cd "$(find "$1" -maxdepth 3 -type d -name site-packages)"
rm nvidia/cudnn/lib/libcudnn_*.so.9 nvidia/nvshmem/lib/*.a
cd nvidia/cu13/lib
rm libcusolverMg.* libnvrtc.alt.* libnvrtc-builtins.alt.* libnvperf_* libcheckpoint.* libpcsamplingutil.* libnvblas.* libcufftw.* ./*.a
cd ../../..
# Headers and tools for compiling, which needs a compiler that is not there.
rm -r torch/include nvidia/cu13/include
find torch/bin -type f ! -name torch_shm_manager -delete
