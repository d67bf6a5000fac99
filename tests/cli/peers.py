"""What stands around a server under test. peers.py drain FIFO: reads what the server logs, but only now and then. peers.py load PORT: one
HTTP request after the other. peers.py slow FILE: answers HTTP after 60 ms, on the port that it writes into FILE. peers.py echo FILE: sends
back what it gets, on the port that it writes into FILE. peers.py ask PORT BYTES TIMES: sends so many bytes and waits for them to come back."""
import fcntl
import http.client
import http.server
import os
import socket
import sys
import time


def drain(path):
    open("/proc/self/comm", "w").write("log-reader")
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 4096)
    print("ready", flush=True)
    while True:
        time.sleep(0.04)
        try:
            os.read(fd, 1 << 20)
        except BlockingIOError:
            pass


def load(port):
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
    while True:
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            connection.close()
            time.sleep(0.05)


class Slow(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(0.06)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


def slow(path):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    open(path, "w").write(f"{server.server_address[1]}\n")
    server.serve_forever()


def echo(path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        with open(path + ".new", "w") as file:
            file.write(f"{server.getsockname()[1]}\n")
        os.rename(path + ".new", path)
        connection = server.accept()[0]
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := connection.recv(65536):
            connection.sendall(data)


def ask(port, size, times):
    with socket.create_connection(("127.0.0.1", int(port)), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(int(times)):
            connection.sendall(b"x" * int(size))
            left = int(size)
            while left:
                left -= len(connection.recv(left)) or sys.exit("the connection has ended")


{"drain": drain, "load": load, "slow": slow, "echo": echo, "ask": ask}[sys.argv[1]](*sys.argv[2:])
