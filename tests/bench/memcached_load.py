"""Asks a memcached for one value again and again: memcached_load.py PORT CLIENTS SECONDS. Prints how many answers there were, how many a second, and the 99th
percentile of their times in ms."""
import selectors
import socket
import sys
import time

port, clients, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
ask = b"get key\r\n"
first = socket.create_connection(("127.0.0.1", port))
first.sendall(b"set key 0 0 100\r\n" + b"x" * 100 + b"\r\n")
first.recv(100)
wait = selectors.DefaultSelector()
sent, times = {}, []
begun = time.monotonic()
for _ in range(clients):
    s = socket.create_connection(("127.0.0.1", port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wait.register(s, selectors.EVENT_READ)
    sent[s] = time.monotonic()
    s.sendall(ask)
while (now := time.monotonic()) < begun + seconds:
    for key, _ in wait.select(1):
        s = key.fileobj
        if not s.recv(4096).endswith(b"END\r\n"):
            continue
        now = time.monotonic()
        times.append(now - sent[s])
        sent[s] = now
        s.sendall(ask)
times.sort()
print(len(times), len(times) / (time.monotonic() - begun), 1000 * times[len(times) * 99 // 100])
