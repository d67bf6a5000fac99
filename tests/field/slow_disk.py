"""A disk that is slow when it is told to: slow_disk.py FOLDER IMAGE. A FUSE file system with one file, `disk`, which is IMAGE; a loop device on it
holds what the programs write. While the file FOLDER.slow exists, no write to it ends. Ends when it is unmounted, or killed."""
import ctypes
import os
import stat
import struct
import sys
import time

folder, image = sys.argv[1:]
LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT, INTERRUPT, BATCH_FORGET = \
    1, 2, 3, 4, 14, 15, 16, 17, 18, 20, 25, 26, 36, 42
ENOSYS, ENOENT = 38, 2
libc = ctypes.CDLL(None, use_errno=True)
data = os.open(image, os.O_RDWR)
size = os.fstat(data).st_size


def attr(node):
    mode, length = (stat.S_IFDIR | 0o755, 0) if node == 1 else (stat.S_IFREG | 0o600, size)
    return struct.pack("<6Q10I", node, length, length // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def written(body):
    _, offset, length = struct.unpack_from("<QQI", body)
    while os.path.exists(folder + ".slow"):
        time.sleep(0.001)
    os.pwrite(data, body[40:40 + length], offset)
    return struct.pack("<II", length, 0)


def answer(opcode, node, body):
    """The answer, or the number of an error."""
    if opcode == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 131072, 0, 16, 12, 131072, 1, 32, 0, 0, *[0] * 7)
    if opcode == LOOKUP:
        return struct.pack("<4Q2I", 2, 1, 3600, 3600, 0, 0) + attr(2) if body.rstrip(b"\0") == b"disk" else ENOENT
    if opcode in (GETATTR, SETATTR):
        return struct.pack("<QII", 3600, 0, 0) + attr(node)
    if opcode == OPEN:
        return struct.pack("<QII", 1, 0, 0)
    if opcode == READ:
        _, offset, length = struct.unpack_from("<QQI", body)
        return os.pread(data, length, offset)
    if opcode == WRITE:
        return written(body)
    if opcode == STATFS:
        return struct.pack("<5Q4I24x", size // 4096, 0, 0, 2, 0, 4096, 255, 4096, 0)
    return b"" if opcode in (RELEASE, FSYNC, FLUSH) else ENOSYS


def main():
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"slow_disk", folder.encode(), b"fuse", 0, options):
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    print("mounted", flush=True)
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError:
            return
        _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
        if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        said = answer(opcode, node, request[40:])
        error, body = (said, b"") if isinstance(said, int) else (0, said)
        os.write(device, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)


main()
