"""The HTTP server of the workspace: connections, access checks, faults, and routing of calls to their endpoints."""

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
from headrace.testing.workspace.faults import ConnectionDroppedError, Faults
from headrace.testing.workspace.http_messages import ApiError, Document, Request, Response
from headrace.testing.workspace.tokens import Tokens

HOST = "127.0.0.1"
DISCOVERY_PATH = "/.well-known/databricks-config"  # where the SDK finds the login service
# The Host header must be a loopback address, as protection against DNS rebinding: the domain of a web page can resolve
# to 127.0.0.1, but the page's requests have that domain in the Host header. A tunnel changes the port, so any port is
# accepted.
LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?", re.IGNORECASE)
MAX_DISCARDED_BYTES = 2**24  # the limit for reading and discarding the body of a rejected call
Endpoint = Callable[[Request], Document | Response]
Route = tuple[str, str, Endpoint]  # method, pattern of the path, endpoint


class Server(ThreadingHTTPServer):
    """Serves calls on 127.0.0.1 until it is closed. Closing it also closes all connections.

    `on_user` is called with the user of each call before the endpoint is called. `watch` is called with one line of
    text for each call: method, path, and the outcome, which is the status or "lost" for a dropped connection.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        port: int,
        faults: Faults,
        tokens: Tokens,
        on_user: Callable[[str], None],
        watch: Callable[[str], None] | None,
    ) -> None:
        self._routes: list[tuple[str, re.Pattern[str], Endpoint]] = []  # as in Route, with compiled patterns
        self.faults, self.tokens, self.on_user, self.watch = faults, tokens, on_user, watch
        self._connections: set[socket.socket] = set()
        try:
            super().__init__((HOST, port), ConnectionHandler)
        except OSError as error:
            raise SetupError(
                f"cannot serve the workspace on port {port}: {error.strerror}",
                fix="choose another port; 0 selects a free port",
            ) from error

    @property
    def url(self) -> str:
        """The URL of the workspace."""
        return f"http://{HOST}:{self.server_address[1]}"

    def set_routes(self, routes: Iterable[Route]) -> None:
        """Set the endpoints, each with the method and the paths of its calls."""
        self._routes = [(method, re.compile(pattern), endpoint) for method, pattern, endpoint in routes]

    def start(self) -> None:
        """Start serving calls in a background thread."""
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        """Stop serving, and shut down the connections that clients keep open."""
        self.shutdown()
        self.server_close()
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def server_bind(self) -> None:
        """Bind to the port. Unlike the base class, do not look up the name of the host."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a new connection and record it as open."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error, unless the client has disconnected."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def respond(self, request: Request) -> Response:
        """Return the response to a request."""
        try:
            result = self._call_endpoint(request)
        except ApiError as error:
            return error.response()
        except Exception:  # report a bug in an endpoint with status 500, as any service does
            return ApiError(500, "INTERNAL_ERROR", traceback.format_exc()).response()
        return result if isinstance(result, Response) else Response.json(result)

    def _call_endpoint(self, request: Request) -> Document | Response:
        self.on_user(request.user)
        for method, pattern, endpoint in self._routes:
            match = pattern.fullmatch(request.path) if method == request.method else None
            if match is not None:
                path_parameters = tuple(unquote(part) for part in match.groups())
                return endpoint(replace(request, path_parameters=path_parameters))
        raise ApiError(404, "ENDPOINT_NOT_FOUND", f"No API found for '{request.method} {request.path}'")


class ConnectionHandler(BaseHTTPRequestHandler):
    """One connection: serves call after call until the client closes it."""

    server: Server
    protocol_version = "HTTP/1.1"
    # Buffer the output, so that headers and body are sent in one packet. A second packet would wait 40 ms until the
    # first packet is acknowledged.
    wbufsize = -1
    disable_nagle_algorithm = True

    def serve(self) -> None:
        """Serve one call, and apply the faults that a test injects.

        Rejected calls and calls of DISCOVERY_PATH are not counted and have no faults.
        """
        path, _, query = self.path.partition("?")
        try:
            self._require_loopback()
            authorization = self.headers.get("Authorization", "")
            user = "" if self._is_public(path) else self.server.tokens.authenticate(authorization)
        except ApiError as error:
            self._reject(Request(self.command, path), error.response())
            return
        body = self._read_body()
        if path == DISCOVERY_PATH:
            self._send(Response.json({"oidc_endpoint": f"{self.server.url}/oidc", "workspace_id": "1"}))
            return
        content_type = self.headers.get("Content-Type", "")
        request = Request(self.command, path, dict(parse_qsl(query)), content_type, body, user)
        faults = self.server.faults
        call_number, call_faults = faults.record_call(request.method, path)
        try:
            # A fault sends a response of its own instead: before the call has any effect, or after it.
            response = faults.apply("before", call_number, call_faults) or self.server.respond(request)
            response = faults.apply("after", call_number, call_faults) or response
        except ConnectionDroppedError:
            self._report(request, "lost")
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._report(request, str(response.status))
        self._send(response)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = serve  # noqa: N815

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Log nothing to stderr: calls are reported to `watch`."""

    def _read_body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self._read(int(self.headers.get("Content-Length") or 0))
        body = b""  # the official client sends empty files with chunked encoding
        while size := int(self.rfile.readline() or b"0", 16):
            body += self._read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _read(self, size: int) -> bytes:
        content = self.rfile.read(size)
        if len(content) < size:  # the client died before it had sent the whole call
            raise ConnectionResetError
        return content

    def _is_public(self, path: str) -> bool:
        """Return whether the call needs no token: only a call of DISCOVERY_PATH, which the SDK makes before it logs in.

        A call with a body always needs a token, so that the server reads no bodies of unknown clients.
        """
        has_body = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        return path == DISCOVERY_PATH and not has_body

    def _require_loopback(self) -> None:
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not LOOPBACK.fullmatch(hosts[0].strip()):
            raise ApiError(403, "PERMISSION_DENIED", f"Host is not a loopback address: {', '.join(hosts) or 'none'}")

    def _reject(self, request: Request, response: Response) -> None:
        """Respond to a call whose body has not been read, discard the body, and close the connection."""
        self._report(request, str(response.status))
        self.close_connection = True
        self._send(response)
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(5)
        remaining = MAX_DISCARDED_BYTES
        with suppress(OSError):
            # Closing while bytes arrive would reset the connection, perhaps before the client has read the response.
            while remaining > 0 and (part := self.connection.recv(2**16)):
                remaining -= len(part)

    def _report(self, request: Request, outcome: str) -> None:
        if self.server.watch is not None:
            self.server.watch(f"{request.method} {urlsplit(self.path).path} {outcome}")

    def _send(self, response: Response) -> None:
        self.send_response(response.status)
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in response.headers.items():
            self.send_header(name, value)
        if response.status != 204:
            self.send_header("Content-Type", response.content_type)
            self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)
