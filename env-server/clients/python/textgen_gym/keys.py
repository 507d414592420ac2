"""CURVE keys: the server's public key and this client's own pair, from `textgen keygen`."""
import os

import zmq

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


class Keys:
    """server_key: 40 characters of Z85, or the file that holds them (NAME.pub). key_file: the client's own NAME.key (mode 0600); a name without
    '/' is looked for in $CREDENTIALS_DIRECTORY first. Without a pair of its own a client gets one for this connection, which a server with an allow-list
    refuses. Secrets are never shown."""

    def __init__(self, server_key=None, public_key=None, secret_key=None, key_file=None):
        if key_file:
            public_key, secret_key = self._read(key_file, secret=True)
        self.server = None  # only who dials needs it
        if server_key:
            self.server = server_key if self._is_key(server_key) else self._read(server_key)[0]
        if not secret_key:
            public_key, secret_key = (k.decode() for k in zmq.curve_keypair())
        if not self._is_key(secret_key):
            raise ValueError("secret_key: expected 40 characters of Z85")
        self.public = public_key or zmq.curve_public(secret_key.encode()).decode()
        self._secret = secret_key
        if not self._is_key(self.public):
            raise ValueError("public_key: expected 40 characters of Z85")

    @staticmethod
    def _is_key(text):
        return len(text) == 40 and all(c in Z85 for c in text) and not os.path.exists(text)

    @staticmethod
    def _read(path, secret=False):
        folder = os.environ.get("CREDENTIALS_DIRECTORY")
        if folder and "/" not in path and os.path.exists(os.path.join(folder, path)):
            path = os.path.join(folder, path)
        if not os.path.exists(path):
            raise ValueError(f"{path}: neither a key of 40 characters nor a file; make one with: textgen keygen NAME")
        if secret and os.stat(path).st_mode & 0o077:
            raise ValueError(f"{path}: others may read this key file; run: chmod 600 {path}")
        found = {}
        with open(path, encoding="ascii") as f:
            for line in f:
                name, equals, value = line.partition("=")
                if equals and not line.lstrip().startswith("#"):
                    found[name.strip()] = value.strip().strip('"')
        if "public-key" not in found or (secret and "secret-key" not in found):
            raise ValueError(f"{path}: no {'secret-key' if secret else 'public-key'} in this file")
        return found["public-key"], found.get("secret-key")

    def apply(self, socket):
        """For a socket that connects."""
        if not self.server:
            raise ValueError("server_key is needed: the public key of the server (its NAME.pub from `textgen keygen`)")
        socket.curve_serverkey = self.server.encode()
        socket.curve_publickey = self.public.encode()
        socket.curve_secretkey = self._secret.encode()

    def __repr__(self):
        return f"Keys(server={self.server!r}, public={self.public!r})"
