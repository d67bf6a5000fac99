"""A normal load for a server, which logs each answer that came late: table_load.py KIND PORT LOG [QUESTION]. A line of the log: START END,
wall-clock ns. KIND is line, http, redis, mqtt or beanstalk."""
import socket
import sys
import time

from inject import Redis

LATE = 40_000_000
PAUSE = 0.005


def connected(port):
    peer = socket.create_connection(("127.0.0.1", int(port)), timeout=60)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def line(port, question):
    peer = connected(port)

    def ask():
        peer.sendall(question.encode() + b"\r\n")
        peer.recv(65536)
    return ask


def http(port, path="/ok"):
    """A connection a request."""
    def ask():
        with connected(port) as peer:
            peer.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
            while peer.recv(65536):
                pass
    return ask


def redis(port):
    server = Redis(port)

    def ask():
        server.ask("set", "load", 1)
        server.ask("get", "load")
    return ask


def mqtt(port):
    peer = connected(port)
    peer.sendall(b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04load")
    peer.recv(4)

    def ask():
        peer.sendall(b"\xc0\x00" * 30)
        answered = 0
        while answered < 60:
            answered += len(peer.recv(60)) or 60
    return ask


def beanstalk(port):
    file = connected(port).makefile("rwb")

    def say(words):
        file.write(words)
        file.flush()
        return file.readline()

    def ask():
        number = say(b"put 0 0 60 2\r\nok\r\n").split()[1]
        say(b"delete " + number + b"\r\n")
    return ask


def main():
    kind, port, path = sys.argv[1:4]
    ask = globals()[kind](port, *sys.argv[4:])
    while True:
        start = time.time_ns()
        try:
            ask()
        except OSError:
            time.sleep(0.1)
            continue
        end = time.time_ns()
        if end - start > LATE:
            with open(path, "a") as file:
                file.write(f"{start} {end}\n")
        time.sleep(PAUSE)


main()
