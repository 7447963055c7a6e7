"""A wire between a client and a server on 127.0.0.1 that a test may cut and mend."""

import contextlib
import socket
import threading


class Wire:
    """Carries bytes to and from `port`; what is cut ends at once in both directions, and nobody gets
    through until it is mended."""

    def __init__(self, port):
        self._target, self._lock, self._pairs, self._mended = port, threading.Lock(), [], True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.carried = 0  # Connections so far.
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        with self._lock:
            self._mended = False
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

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
            if not self._mended:
                near.close()
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target), timeout=10)
            except OSError:
                near.close()
                return
            far.settimeout(None)
            self._pairs.append((near, far))
            self.carried += 1
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=_pump, args=(source, sink), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
    source.close()  # The other pump closes the other end.
