"""An HTTP server that does what a test likes, on a loopback address."""
import http.server
import threading


class Service(http.server.ThreadingHTTPServer):
    """Its handlers wait for `release` and `ending`, which its end sets both."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, host, handler):
        super().__init__((host, 0), handler)
        self.release, self.ending = threading.Event(), threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.ending.set()
        self.release.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, *_):
        """A worker that has had enough, or is killed, closes its connection."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def raw(self, bytes):
        self.wfile.write(bytes)
