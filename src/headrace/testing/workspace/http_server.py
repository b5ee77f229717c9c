"""The HTTP side of the workspace: connections, access checks, faults, and routing of calls to their handlers."""

from __future__ import annotations

import re
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from headrace.errors import SetupError
from headrace.testing.workspace.faults import Faults, LostError
from headrace.testing.workspace.http_messages import Answer, ApiError, Document, Request
from headrace.testing.workspace.tokens import Tokens

HOST = "127.0.0.1"
DISCOVERY = "/.well-known/databricks-config"
# A page that resolved its own name to 127.0.0.1 (DNS rebinding) sends that name; the port differs behind a tunnel.
LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?", re.IGNORECASE)
DRAINED = 2**24  # bytes of a refused call that are read, and thrown away
Handle = Callable[[Request], Document | Answer]
Route = tuple[str, str, Handle]


class Server(ThreadingHTTPServer):
    """Answers calls on loopback until it is closed; no connection outlives it."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        port: int,
        faults: Faults,
        tokens: Tokens,
        greet: Callable[[str], None],
        watch: Callable[[str], None] | None,
    ) -> None:
        self._routes: list[tuple[str, re.Pattern[str], Handle]] = []
        self.faults, self.tokens, self.greet, self.watch = faults, tokens, greet, watch
        self._open: set[socket.socket] = set()
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            raise SetupError(
                f"the workspace cannot be served on port {port}: {error.strerror}", fix="choose another port"
            ) from error

    @property
    def url(self) -> str:
        """Where the workspace is."""
        return f"http://{HOST}:{self.server_address[1]}"

    def route(self, routes: Iterable[Route]) -> None:
        """Which function answers which calls."""
        self._routes = [(method, re.compile(pattern), handle) for method, pattern, handle in routes]

    def start(self) -> None:
        """Answers from now on, in threads of its own."""
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        """Takes no more calls, and cuts the connections that clients keep open."""
        self.shutdown()
        self.server_close()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def server_bind(self) -> None:
        """Binds without asking a name service who we are."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """One more connection."""
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """One connection less."""
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no news."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def answer(self, request: Request) -> Answer:
        """What the workspace says to a request."""
        try:
            found = self._handle(request)
        except ApiError as refusal:
            return refusal.answer()
        except Exception:  # a call that makes us stumble is answered, as a service does
            return ApiError(500, "INTERNAL_ERROR", traceback.format_exc()).answer()
        return found if isinstance(found, Answer) else Answer.of(found)

    def _handle(self, request: Request) -> Document | Answer:
        self.greet(request.user)
        for method, pattern, handle in self._routes:
            match = pattern.fullmatch(request.path) if method == request.method else None
            if match is not None:
                rest = tuple(unquote(part) for part in match.groups())
                return handle(replace(request, rest=rest))
        raise ApiError(404, "ENDPOINT_NOT_FOUND", f"No API found for '{request.method} {request.path}'")


class Handler(BaseHTTPRequestHandler):
    """One connection: call after call, as long as the client keeps it."""

    server: Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet: two wait for each other's acknowledgement (40 ms)
    disable_nagle_algorithm = True

    def serve(self) -> None:
        """Answer one call, with the faults that are due."""
        path, _, query = self.path.partition("?")
        try:
            self._require_loopback()
            user = "" if self._is_public(path) else self.server.tokens.user_of(self.headers.get("Authorization", ""))
        except ApiError as error:
            self._refuse(Request(self.command, path), error.answer())
            return
        body = self._body()
        if path == DISCOVERY:
            self._send(Answer.of({"oidc_endpoint": f"{self.server.url}/oidc", "workspace_id": "1"}))
            return
        kind = self.headers.get("Content-Type", "")
        request = Request(self.command, path, dict(parse_qsl(query)), kind, body, user)
        faults = self.server.faults
        number, due = faults.arrived(request.method, path)
        try:
            answer = faults.strike("before", number, due) or self.server.answer(request)
            answer = faults.strike("after", number, due) or answer
        except LostError:
            self._watch(request, "lost")
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._watch(request, str(answer.status))
        self._send(answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = serve  # noqa: N815

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Calls are told to whoever watches, not to stderr."""

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self._read(int(self.headers.get("Content-Length") or 0))
        body = b""  # the official client sends empty files in this way
        while size := int(self.rfile.readline() or b"0", 16):
            body += self._read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _read(self, size: int) -> bytes:
        found = self.rfile.read(size)
        if len(found) < size:  # the client died in the middle: there was no call
            raise ConnectionResetError
        return found

    def _is_public(self, path: str) -> bool:
        """Return whether the call needs no token: the SDK asks for the login services before it logs in."""
        return path == DISCOVERY and "Content-Length" not in self.headers and "Transfer-Encoding" not in self.headers

    def _require_loopback(self) -> None:
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not LOOPBACK.fullmatch(hosts[0].strip()):
            raise ApiError(403, "PERMISSION_DENIED", f"Host is not a loopback address: {', '.join(hosts) or 'none'}")

    def _refuse(self, request: Request, answer: Answer) -> None:
        """Answer a call without handling its body, and close the connection."""
        self._watch(request, str(answer.status))
        self.close_connection = True
        self._send(answer)
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(5)
        left = DRAINED  # closing while bytes arrive would reset the connection before the client reads the answer
        with suppress(OSError):
            while left > 0 and (part := self.connection.recv(2**16)):
                left -= len(part)

    def _watch(self, request: Request, how: str) -> None:
        if self.server.watch is not None:
            self.server.watch(f"{request.method} {urlsplit(self.path).path} {how}")

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
