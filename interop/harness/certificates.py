"""Certificates: who vouches for whom, and files of them as Kubernetes mounts and replaces them."""

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DAY = datetime.timedelta(days=1)
PEM = serialization.Encoding.PEM


class Authority:
    """Somebody who vouches for others."""

    def __init__(self, name):
        self.name, self.key = named(name), ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        made = builder(self.name, self.name, self.key).add_extension(constraints, critical=True)
        self.pem = made.sign(self.key, hashes.SHA256()).public_bytes(PEM)

    def vouches_for(self, name, expired=False):
        """A certificate of somebody on this machine, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName(name), x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        names.append(x509.UniformResourceIdentifier(spiffe(name)))
        made = builder(named(name), self.name, key, ago=3 if expired else 1)
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        private = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return made.sign(self.key, hashes.SHA256()).public_bytes(PEM), private


class Files:
    """A directory behind a link: `ca.pem`, and NAME.pem and NAME.key of all that it vouches for."""

    def __init__(self, folder, name, authority, *names):
        self.link, self.generation = folder / name, 0
        self.replace(authority, *names)

    def replace(self, authority, *names, expired=False):
        """Moves the link to a new directory, all at once."""
        self.generation += 1
        folder = self.link.with_name(f"{self.link.name}.{self.generation}")
        folder.mkdir()
        (folder / "ca.pem").write_bytes(authority.pem)
        for name in names:
            certificate, key = authority.vouches_for(name, expired)
            (folder / f"{name}.pem").write_bytes(certificate)
            (folder / f"{name}.key").write_bytes(key)
        new = self.link.with_name(f"{self.link.name}.new")
        new.symlink_to(folder)
        new.replace(self.link)

    def of(self, name):
        """The paths of somebody's certificate and key."""
        return str(self.link / f"{name}.pem"), str(self.link / f"{name}.key")

    @property
    def ca(self):
        """The path of who vouches for them."""
        return str(self.link / "ca.pem")


def spiffe(name):
    """What its certificate says somebody is (SPIFFE)."""
    return f"spiffe://interop/{name}"


def named(name):
    """A name of X.509."""
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def builder(subject, issuer, key, ago=1):
    """A certificate that began so many days ago, and is good for two."""
    begin = datetime.datetime.now(datetime.UTC) - ago * DAY
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number())
    return made.not_valid_before(begin).not_valid_after(begin + 2 * DAY)
