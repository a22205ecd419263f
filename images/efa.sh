#!/bin/sh
# SPDX-License-Identifier: MIT-0
# Installs the user side of AWS's Elastic Fabric Adapter, version $1: libfabric and the plugin that makes NCCL use it.
# $2 is the sha256 of the archive, or nothing. Without EFA on the node the plugin steps aside and NCCL uses its own sockets.
set -eu
version=$1 wanted=${2:-}
work=$(mktemp -d)
cd "$work"
wget --quiet "https://efa-installer.amazonaws.com/aws-efa-installer-$version.tar.gz"
if [ -n "$wanted" ]; then echo "$wanted  aws-efa-installer-$version.tar.gz" | sha256sum --check --quiet; fi
tar -xf "aws-efa-installer-$version.tar.gz"
cd aws-efa-installer
# The kernel module and the limits are the node's; MPI is not used; there is no device here to verify with. On a base of
# NVIDIA the installer would take it for one of their framework images and leave most of it out.
apt-get update --quiet
./efa_installer.sh --yes --skip-kmod --skip-limit-conf --skip-mpi --no-verify --disable-ngc --disable-build-ngc
cd /
rm -rf "$work" /var/lib/apt/lists/* /var/cache/apt/*
# Found by the loader and not by LD_LIBRARY_PATH, which whoever sets it forgets to extend.
printf '%s\n' /opt/amazon/efa/lib /opt/amazon/ofi-nccl/lib > /etc/ld.so.conf.d/000-lingoss-efa.conf
ldconfig
# A build without the plugin would train over TCP without a word.
grep -q "EFA installer version: $version" /opt/amazon/efa_installed_packages
ls /opt/amazon/efa/lib/libfabric.so.1 /opt/amazon/ofi-nccl/lib/libnccl-net*.so
ldconfig -p | grep libnccl-net
