# SPDX-License-Identifier: MIT-0
"""The certificates and kubeconfigs of one cluster, made by openssl: one authority for everything, good for 30 days."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from harness.cache import HarnessError

DAYS = "30"


class Authority:
    """A folder with `ca.crt`, `ca.key`, and a `<name>.crt` and `<name>.key` for each certificate it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._key("ca")
        usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"]
        request = ["-new", "-x509", "-days", DAYS, "-subj", "/CN=lingoss-harness", *usage]
        self._openssl("req", *request, "-key", "ca.key", "-out", "ca.crt")

    def path(self, name: str) -> Path:
        """The file of that name in the folder."""
        return self.folder / name

    def certify(self, name: str, subject: str, names: str = "", usage: str = "clientAuth") -> None:
        """Write a key and a certificate; `subject` as `/O=group/CN=user`, `names` as `DNS:host,IP:address`."""
        self._key(name)
        self._openssl("req", "-new", "-key", f"{name}.key", "-subj", subject, "-out", f"{name}.csr")
        lines = ["keyUsage=critical,digitalSignature", f"extendedKeyUsage={usage}"]
        if names:
            lines.append(f"subjectAltName={names}")
        self.path(f"{name}.ext").write_text("\n".join(lines) + "\n")
        signer = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", DAYS]
        self._openssl("x509", "-req", "-in", f"{name}.csr", *signer, "-extfile", f"{name}.ext", "-out", f"{name}.crt")

    def signing_pair(self, name: str) -> None:
        """Write an RSA key pair `<name>.key`, `<name>.pub`: the API server signs service account tokens with it."""
        self._openssl("genrsa", "-out", f"{name}.key", "2048")
        self._openssl("rsa", "-in", f"{name}.key", "-pubout", "-out", f"{name}.pub")

    def kubeconfig(self, name: str, server: str) -> Path:
        """A kubeconfig (context `lingoss`) for the client certificate `name`; it names files of this folder."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "lingoss", "cluster": {"server": server, "certificate-authority": str(self.path("ca.crt"))}}
            ],
            "users": [
                {
                    "name": name,
                    "user": {
                        "client-certificate": str(self.path(f"{name}.crt")),
                        "client-key": str(self.path(f"{name}.key")),
                    },
                }
            ],
            "contexts": [{"name": "lingoss", "context": {"cluster": "lingoss", "user": name}}],
            "current-context": "lingoss",
        }
        place = self.path(f"{name}.kubeconfig")
        place.write_text(json.dumps(content, indent=1))  # JSON is YAML
        return place

    def _key(self, name: str) -> None:
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")

    def _openssl(self, *arguments: str) -> None:
        done = subprocess.run(["openssl", *arguments], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise HarnessError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")
