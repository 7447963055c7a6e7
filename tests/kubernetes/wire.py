"""A wire between a client and a server on 127.0.0.1 that a test may cut and mend."""

import contextlib
import socket
import threading


class Wire:
    """Carries bytes to and from `port`."""

    def __init__(self, port):
        self._target, self._lock, self._pairs, self._mended = port, threading.Lock(), [], True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.carried = self.turned_away = 0  # Connections so far.
        threading.Thread(target=self._accept, daemon=True).start()

    def drop(self):
        """What runs through it ends at once, in both directions; who comes next gets through. Returns how many there
        were."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        return len(pairs)

    def cut(self):
        """The same, and nobody gets through until it is mended."""
        with self._lock:
            self._mended = False
        return self.drop()

    def mend(self):
        with self._lock:
            self._mended = True

    def close(self):
        self.cut()
        self._listener.close()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:  # Closed.
                return
            self._carry(near)

    def _carry(self, near):
        with self._lock:
            try:
                far = socket.create_connection(("127.0.0.1", self._target), timeout=10) if self._mended else None
            except OSError:
                far = None
            if far is None:
                self.turned_away += 1
                near.close()
                return
            far.settimeout(None)
            pair = (near, far)
            self._pairs.append(pair)
            self.carried += 1
        for source, sink in (pair, pair[::-1]):
            threading.Thread(target=self._pump, args=(source, sink, pair), daemon=True).start()

    def _pump(self, source, sink, pair):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()  # The other pump closes the other end.
        with self._lock, contextlib.suppress(ValueError):
            self._pairs.remove(pair)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
