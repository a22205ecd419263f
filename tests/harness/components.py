# SPDX-License-Identifier: MIT-0
"""How each program of the cluster is configured. Ports are the usual ones: the network is the sandbox's own."""

from __future__ import annotations

import json
from pathlib import Path

from harness.certs import Authority

NODE = "real-0"
NODE_ADDRESS = "10.88.77.1"  # the pods' bridge: the node, the kubelet and the DNS answer there
POD_NETWORK = "10.88.77.0/24"
SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
BRIDGE = "pods0"
LOCAL_API = "https://127.0.0.1:6443"
CONTAINERD = "unix:///run/containerd/containerd.sock"  # the usual place: /run is the sandbox's own
PAUSE_IMAGE = "localhost/pause:1"
ETCD_URL = "http://127.0.0.1:2379"

CLIENTS = {
    "controller-manager": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "proxy": "/CN=system:kube-proxy",
    "kubelet-client": "/O=system:masters/CN=kube-apiserver-kubelet-client",
    "front-proxy": "/CN=front-proxy-client",
    "local-admin": "/O=system:masters/CN=local-admin",  # of programs inside the sandbox
    "admin": "/O=system:masters/CN=admin",  # of people and tests outside
}


def certificates(folder: Path, address: str) -> None:
    """Everything that is signed; `address` is the cluster's as the host sees it."""
    pki = Authority(folder)
    names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    names.append("kubernetes.default.svc.cluster.local")
    addresses = ["127.0.0.1", address, NODE_ADDRESS, API_SERVICE]
    alternatives = ",".join([f"DNS:{name}" for name in names] + [f"IP:{ip}" for ip in addresses])
    pki.certify("apiserver", "/CN=kube-apiserver", alternatives, "serverAuth")
    node_names = f"DNS:{NODE},IP:{NODE_ADDRESS}"
    pki.certify("kubelet", f"/O=system:nodes/CN=system:node:{NODE}", node_names, "serverAuth,clientAuth")
    pki.certify("webhook", "/CN=webhook", "DNS:localhost,IP:127.0.0.1", "serverAuth")
    for name, subject in CLIENTS.items():
        pki.certify(name, subject)
    pki.signing_pair("service-accounts")
    for name in ("controller-manager", "scheduler", "proxy", "kubelet", "local-admin"):
        pki.kubeconfig(name, LOCAL_API)
    pki.kubeconfig("admin", f"https://{address}:6443")


def etcd(data: Path) -> list[str]:
    """Arguments of etcd; it skips fsync, since the data lives as long as the test."""
    peer = "http://127.0.0.1:2380"
    return [
        f"--data-dir={data}",
        f"--listen-client-urls={ETCD_URL}",
        f"--advertise-client-urls={ETCD_URL}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(pki: Path) -> list[str]:
    """Arguments of kube-apiserver, with Node and RBAC authorization; PodSecurity admission is on by default."""
    return [
        f"--etcd-servers={ETCD_URL}",
        "--bind-address=0.0.0.0",
        f"--advertise-address={NODE_ADDRESS}",
        "--secure-port=6443",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        # It taints new nodes until the node lifecycle controller, which does not run here, says that they are ready.
        "--disable-admission-plugins=TaintNodesByCondition",
        f"--kubelet-client-certificate={pki / 'kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'kubelet-client.key'}",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        "--kubelet-preferred-address-types=InternalIP,Hostname",
        f"--requestheader-client-ca-file={pki / 'ca.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki / 'front-proxy.crt'}",
        f"--proxy-client-key-file={pki / 'front-proxy.key'}",
        "--allow-privileged=true",
        "--max-requests-inflight=1000",
    ]


def controller_manager(pki: Path) -> list[str]:
    """Arguments of kube-controller-manager; without node lifecycle, simulated nodes need no heartbeat."""
    return [
        *_client(pki / "controller-manager.kubeconfig"),
        f"--service-account-private-key-file={pki / 'service-accounts.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        "--use-service-account-credentials=true",
        "--controllers=*,-node-lifecycle-controller,-bootstrap-signer-controller,-token-cleaner-controller",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        f"--cluster-signing-key-file={pki / 'ca.key'}",
    ]


def scheduler(pki: Path) -> list[str]:
    """Arguments of kube-scheduler."""
    return _client(pki / "scheduler.kubeconfig")


def _client(kubeconfig: Path) -> list[str]:
    roles = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    return [*(f"--{role}={kubeconfig}" for role in roles), "--leader-elect=false", "--bind-address=127.0.0.1"]


def containerd(folder: Path) -> list[str]:
    """Write the configuration of containerd and of the pods' network below `folder`; return its arguments."""
    networks = folder / "networks"
    networks.mkdir(parents=True)
    addresses = {"subnet": POD_NETWORK, "rangeStart": "10.88.77.10", "gateway": NODE_ADDRESS}
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(folder / "addresses"),
            "ranges": [[addresses]],
            "routes": [{"dst": SERVICE_NETWORK, "gw": NODE_ADDRESS}],
        },
    }
    network = {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}
    (networks / "pods.conflist").write_text(json.dumps(network, indent=1))
    (folder / "config.toml").write_text(
        f"""version = 2
root = "{folder}/root"
state = "/run/containerd/state"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true  # lowering it needs a capability that a machine may lack
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{networks}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""
    )
    return [f"--config={folder / 'config.toml'}"]


def kubelet(folder: Path, pki: Path, cgroup: str) -> list[str]:
    """Write the kubelet's configuration into `folder`; return its arguments."""
    folder.mkdir()
    (folder / "resolv.conf").touch()  # pods reach the cluster's names only
    low = "1%"
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "healthzBindAddress": "127.0.0.1",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "containerRuntimeEndpoint": CONTAINERD,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(pki / "kubelet.key"),
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": low, "imagefs.available": low},
        "imageGCHighThresholdPercent": 100,  # the images come from archives: once removed they could not be pulled
        "imageGCLowThresholdPercent": 99,
        "resolvConf": str(folder / "resolv.conf"),
        "clusterDomain": "cluster.local",
        "clusterDNS": [DNS_SERVICE],
        "podLogsDir": str(folder / "pod-logs"),
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "10s",
        "makeIPTablesUtilChains": False,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    return [
        f"--config={folder / 'config.json'}",
        f"--kubeconfig={pki / 'kubelet.kubeconfig'}",
        f"--hostname-override={NODE}",
        f"--node-ip={NODE_ADDRESS}",
        f"--root-dir={folder / 'root'}",
        f"--cert-dir={folder / 'certificates'}",
        "--node-labels=lingoss.test/node=real",
    ]


def proxy(folder: Path, pki: Path) -> list[str]:
    """Write kube-proxy's configuration into `folder`; return its arguments."""
    folder.mkdir()
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "bindAddress": "127.0.0.1",
        "hostnameOverride": NODE,
        "clientConnection": {"kubeconfig": str(pki / "proxy.kubeconfig")},
        "clusterCIDR": POD_NETWORK,
        # These limits are the machine's, not the sandbox's: leave them.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    return [f"--config={folder / 'config.json'}"]


def coredns(folder: Path, pki: Path) -> list[str]:
    """Write CoreDNS's configuration into `folder`; return its arguments."""
    folder.mkdir()
    (folder / "Corefile").write_text(
        f""".:53 {{
    bind {NODE_ADDRESS}
    errors
    ready 127.0.0.1:8181
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {pki / "local-admin.kubeconfig"} lingoss
        pods insecure
    }}
}}
"""
    )
    return ["-conf", str(folder / "Corefile")]


def dns_objects() -> list[dict[str, object]]:
    """The Service by which pods find CoreDNS, and the endpoint behind it: it runs on the node, not in a pod."""
    meta = {"name": "kube-dns", "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}}
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"clusterIP": DNS_SERVICE, "ports": ports}},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**meta, "labels": {"kubernetes.io/service-name": "kube-dns"}},
            "addressType": "IPv4",
            "ports": ports,
            "endpoints": [{"addresses": [NODE_ADDRESS], "conditions": {"ready": True}}],
        },
    ]
