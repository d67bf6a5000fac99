"""--prometheus PORT: clients that connect and say nothing, or almost nothing, keep nobody out, and are closed."""
import signal
import socket

from hostile import *

need_root()
own_network()
port = 9100
target = start(['sleep', '1000'])
arm = Arm('--source', 'sample', '--no-decode', '-o', 'http', '-p', target.pid, '--on', 'offcpu>1000s', '--prometheus', port)


def scrape(source):
    """How many bytes of metrics came."""
    try:
        with socket.create_connection(('127.0.0.1', port), timeout=PATIENCE, source_address=(source, 0)) as c:
            c.sendall(b'GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
            text = b''
            while piece := c.recv(65536):
                text += piece
    except OSError:
        return 0
    return len(text) if text.startswith(b'HTTP/1.1 200') and text.endswith(b'# EOF\n') else 0


def silent(n, source):
    return [socket.create_connection(('127.0.0.1', port), source_address=(source, 0)) for _ in range(n)]


def is_closed(c):
    c.setblocking(False)
    try:
        return c.recv(1) == b''
    except BlockingIOError:
        return False
    except OSError:
        return True


check(scrape('127.0.0.1') > 0, 'metrics are served')
held = silent(40, '127.0.0.1')
check(all(scrape('127.0.0.1') for _ in range(5)), 'also while the same client holds 40 silent connections')
check(scrape('127.0.0.2') > 0, 'and to another client')
check(until(lambda: sum(map(is_closed, held)) >= 32), 'the oldest silent ones are closed', sum(map(is_closed, held)))
many = [c for i in range(10, 40) for c in silent(2, f'127.0.0.{i}')]
check(all(scrape(f'127.0.0.{i}') for i in (2, 3, 10)), 'nor do many clients with two each keep others out')
try:
    many[-1].sendall(b'GET /met')
except OSError:
    pass  # it was silent for too long already
check(until(lambda: all(map(is_closed, held + many))), 'whoever says no more is closed in time')
check(scrape('127.0.0.1') > 0, 'metrics are served at the end')
check(arm.end(signal.SIGTERM) is not None, 'arm ends')
finish()
