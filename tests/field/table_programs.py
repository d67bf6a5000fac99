"""The programs of the table: how each is started and loaded, and which stalls it is made to have."""
import collections
import glob
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time
import urllib.request

import table_stalls as stalls
from inject import SPIN, Redis
from table_stalls import HERE, PYTHON, Truth, asked, lines_of, until
from told import MS

# The triggers that a user tries, the first one first; what makes one stall of a program.
Cause = collections.namedtuple("Cause", "triggers make")
WAIT, BUSY, RUNQ, SOCKET = "offcpu>50ms", "busy>50ms", "runq>50ms", "socket>50ms"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def listens(port):
    with socket.socket() as peer:
        return peer.connect_ex(("127.0.0.1", port)) == 0


def child_of(pid):
    return [int(child) for child in open(f"/proc/{pid}/task/{pid}/children").read().split()]


class Program:
    """NAME, the COMMAND that it needs, the CAUSES that are its own, and the LOAD's arguments behind the port."""
    load = ("http",)
    clients = 2
    needs_disk = False
    needs_peer = False
    own = {}
    version = ("--version",)

    def __init__(self, folder):
        self.work, self.port, self.late = folder, free_port(), f"{folder}/late"
        self.log = f"{folder}/log"
        self.started, self.disk, self.peer = [], None, 0
        self.cpu = max(os.sched_getaffinity(0))
        self.target = self.tid = None

    def causes(self):
        found = dict(self.own)
        found["stopped"] = Cause((BUSY, SOCKET), stalls.stopped)
        found["unread"] = Cause((SOCKET, BUSY), stalls.unread)
        found["runq"] = Cause((RUNQ, WAIT), stalls.run_queue)
        if stalls.can_throttle():
            found["throttled"] = Cause((WAIT, RUNQ), stalls.throttled)
        if stalls.can_freeze():
            found["frozen"] = Cause((BUSY, WAIT), stalls.frozen)
        return found

    def run(self, *command, **options):
        output = open(f"{self.work}/{os.path.basename(command[0])}.out", "ab")
        options = {"stdout": output, "stderr": output, "stdin": subprocess.DEVNULL, "cwd": self.work, **options}
        self.started.append(subprocess.Popen([str(word) for word in command], **options))
        return self.started[-1]

    def start(self):
        if self.needs_disk:
            self.disk = stalls.Disk(self.work)
        if self.needs_peer:
            self.peer = free_port()
            self.backend = self.run(PYTHON, HERE / "table_stalls.py", self.peer, stdout=open(f"{self.work}/peer", "w"))
            until(lambda: listens(self.peer), what="the peer")
        self.target = self.run(*self.command())
        until(lambda: listens(self.port), 60, f"{self.name} on its port")
        self.pids = self.target_pids()
        self.ready()
        for _ in self.load[:1] * self.clients:  # two clients: when it is stopped in the request of one, that of the other is unread
            self.run(PYTHON, HERE / "table_load.py", self.load[0], self.port, self.late, *self.load[1:])

    def target_pids(self):
        return [self.target.pid]

    def ready(self):
        pass

    def end(self):
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.disk:
            self.disk.end()

    def get(self, path):
        return urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30).read()


def by_log(words):
    """A request that the program itself logs."""
    def make(program):
        before = len(lines_of(program.log))
        program.get("/" + words.format(folder=program.work, peer=f"{program.peer}"))
        line = until(lambda: lines_of(program.log)[before:], what="the program's log")[0]
        start, end, tid, _ = line.split()
        return stalls.measured(int(start), int(end), int(tid))
    return make


def by_peer(path):
    """The peer answers late; when it began and ended to, its own log says."""
    def make(program):
        log = f"{program.work}/peer"
        before = len(lines_of(log))
        program.get(path.format(peer=program.peer))
        start, end = map(int, until(lambda: lines_of(log)[before:], what="the peer's log")[0].split()[:2])
        return stalls.measured(start, end)._replace(observed=True)
    return make


def by_late_peer(program):
    """The peer answers the next request of the load late."""
    log = f"{program.work}/peer"
    before = len(lines_of(log))
    program.backend.send_signal(10)
    start, end = map(int, until(lambda: lines_of(log)[before:], what="the peer's log")[0].split()[:2])
    return stalls.measured(start, end)._replace(observed=True)


def file_lock(kind, path):
    """Held by another process, which asks the program for it meanwhile."""
    def make(program):
        file = f"{program.work}/flock"
        held = subprocess.Popen([PYTHON, "-c", f"import fcntl, sys, time; file = open(sys.argv[1], 'w'); fcntl.{kind}(file, fcntl.LOCK_EX)\n"
                                 "print(flush=True); time.sleep(0.31)", file], stdout=subprocess.PIPE)
        held.stdout.readline()
        truth = by_log(f"{path}={file}")(program)
        held.wait()
        return truth
    return make


def by_disk(words):
    def act(program):
        program.get("/" + words.format(folder=program.disk.path))

    def make(program):
        before = len(lines_of(program.log))
        program.disk.slow(lambda: act(program))
        start, end, tid, _ = until(lambda: lines_of(program.log)[before:], what="the program's log")[0].split()
        return stalls.measured(int(start), int(end), int(tid))
    return make


class AppServer(Program):
    """One of servers/, which logs its own stalls."""
    needs_disk = needs_peer = True

    def version_text(self):
        return subprocess.run(self.version, capture_output=True, text=True, check=True).stdout.split("\n")[0]


class PythonServer(AppServer):
    name, needs, version = "python", PYTHON, (PYTHON, "--version")
    own = {
        "sleep": Cause((WAIT, "syscall:clock_nanosleep>50ms"), by_log("sleep")),
        "compute": Cause((BUSY, "runq>50ms"), by_log("compute")),
        "lock": Cause((WAIT, "offcpu>50ms,idle=yes"), by_log("lock")),
        "flock": Cause((WAIT, "syscall:flock>50ms"), file_lock("flock", "flock")),
        "peer": Cause((WAIT, "syscall:recvfrom>50ms"), by_peer("/peer={peer}/slow")),
        "disk": Cause(("syscall:fsync>50ms", WAIT), by_disk("disk={folder}/orders")),
    }

    def command(self):
        return PYTHON, HERE / "servers/server.py", self.port, self.log


class GoServer(AppServer):
    name, needs, version = "go", "go", ("go", "version")
    own = {
        "sleep": Cause((WAIT, BUSY), by_log("sleep")),
        "compute": Cause((BUSY, WAIT), by_log("compute")),
        "lock": Cause((WAIT, "offcpu>50ms,idle=yes"), by_log("lock")),
        "flock": Cause((WAIT, "syscall:flock>50ms"), file_lock("flock", "flock")),
        "disk": Cause(("syscall:fsync>50ms", WAIT), by_disk("disk={folder}/orders")),
    }

    def command(self):
        environment = dict(os.environ, GOFLAGS="-trimpath", GO111MODULE="off", GOCACHE=f"{self.work}/cache")
        subprocess.run(["go", "build", "-o", "server", HERE / "servers/server.go"], cwd=self.work, env=environment, check=True)
        return f"{self.work}/server", self.port, self.log


class JavaServer(AppServer):
    name, needs, version = "java", "javac", ("java", "--version")
    own = {
        "sleep": Cause((WAIT, BUSY), by_log("sleep")),
        "compute": Cause((BUSY, WAIT), by_log("compute")),
        "lock": Cause((WAIT, "offcpu>50ms,idle=yes"), by_log("lock")),
        "flock": Cause((WAIT, "syscall:fcntl>50ms"), file_lock("lockf", "flock")),
        "peer": Cause((WAIT, "syscall>50ms"), by_peer("/peer={peer}/slow")),
        "disk": Cause(("syscall:fsync>50ms", WAIT), by_disk("disk={folder}/orders")),
    }

    def command(self):
        subprocess.run(["javac", "-d", self.work, HERE / "servers/Server.java"], check=True)
        return "java", "-Xshare:auto", "-Xmx64m", "-cp", self.work, "Server", self.port, self.log


class NodeServer(AppServer):
    name, needs, version = "node", "node", ("node", "--version")
    own = {
        "sleep": Cause((BUSY, WAIT), by_log("sleep")),
        "child": Cause((BUSY, WAIT), by_log("child")),
        "compute": Cause((BUSY, WAIT), by_log("compute")),
        "disk": Cause(("syscall:fsync>50ms", BUSY), by_disk("disk={folder}/orders")),
    }

    def command(self):
        return "node", HERE / "servers/server.js", self.port, self.log


def redis_asks(words):
    def make(program):
        server = Redis(program.port)
        start = time.time_ns()
        took = server.slowest(*(word if word != "MANY" else program.many for word in words))
        return Truth(start, time.time_ns(), took, took, program.target.pid, False)
    return make


class RedisServer(Program):
    name, needs, load, needs_disk = "redis", "redis-server", ("redis",), True
    own = {
        "sleep": Cause((BUSY, WAIT), redis_asks(("debug", "sleep", 0.3))),
        "compute": Cause((BUSY, WAIT), redis_asks(("eval", SPIN, 0, "MANY"))),
        "disk": Cause(("syscall:fdatasync>50ms", WAIT), stalls.slow_disk()),
    }

    def command(self):
        return ("redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--appendfsync", "always",
                "--enable-debug-command", "yes", "--dir", self.disk.path)

    def ready(self):
        server = Redis(self.port)
        server.ask("config", "set", "slowlog-log-slower-than", 50_000)
        self.many = 1_000_000
        took = 0
        while took < 100 * MS:
            self.many *= 2
            took = server.slowest("eval", SPIN, 0, self.many)
        self.many = self.many * 300 * MS // took


class Client:
    """A database's own client, a line in, a line out."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def say(self, statement):
        self.process.stdin.write(statement + "\n")

    def ask(self, statement):
        """Until it is over."""
        self.say(statement + "\nSELECT 'over';")
        lines = iter(self.process.stdout.readline, "")
        return [line.strip() for line in iter(lambda: next(lines, "over\n"), "over\n")]

    def end(self):
        self.process.kill()
        self.process.wait()


class Database(Program):
    """The load is a session that asks all the time, and sometimes for what stalls it; another one holds the locks."""
    needs_disk = True
    load = ()

    def __init__(self, folder):
        super().__init__(folder)
        self.turn, self.ended = threading.Lock(), threading.Event()

    def ready(self):
        self.loader = threading.Thread(target=self.ask_all_the_time)
        self.loader.start()

    def ask_all_the_time(self):
        while not self.ended.wait(0.005):
            with self.turn:
                truth = asked(self.session.ask, "SELECT n FROM hot WHERE id = 2;")
            if truth.least > 40 * MS:
                with open(self.late, "a") as file:
                    file.write(f"{truth.start} {truth.end}\n")

    def end(self):
        self.ended.set()
        super().end()

    def client(self):
        client = Client(*self.client_command())
        self.started.append(client.process)
        return client

    def locked(self, take, statement):
        """Another session holds the lock for 300 ms."""
        self.holder.ask("BEGIN; " + take)
        self.holder.say("SELECT SLEEP_OF(0.31); COMMIT;".replace("SLEEP_OF", self.sleep))
        return self.slow(statement)._replace(observed=True)

    def slow(self, statement):
        with self.turn:
            return asked(self.session.ask, statement)


def statement(text):
    def make(program):
        return program.slow(text.replace("MANY", str(program.many)))
    return make


def database_lock(take, text):
    return lambda program: program.locked(take, text)


class Postgres(Database):
    name, needs, sleep = "postgres", (glob.glob("/usr/lib/postgresql/*/bin/postgres") or ["postgres"])[-1], "pg_sleep"
    update = "UPDATE hot SET n = n + 1 WHERE id = 1;"
    own = {
        "sleep": Cause((WAIT, BUSY), statement("SELECT pg_sleep(0.3);")),
        "compute": Cause((BUSY, WAIT), statement("SELECT count(md5(i::text)) FROM generate_series(1, MANY) i;")),
        "row lock": Cause((WAIT, "offcpu>50ms,idle=yes"), database_lock(update, update)),
        "table lock": Cause((WAIT, "offcpu>50ms,idle=yes"), database_lock("LOCK TABLE hot;", "SELECT count(*) FROM hot;")),
        "disk": Cause(("syscall:fdatasync>50ms", WAIT), stalls.slow_disk(lambda program: program.slow(Postgres.update))),
    }

    def command(self):
        data, binary = f"{self.disk.path}/data", os.path.dirname(self.needs)
        as_postgres = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")
        os.mkdir(data)
        shutil.chown(data, "postgres")
        subprocess.run([*as_postgres, f"{binary}/initdb", "-D", data, "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(f"{data}/postgresql.conf", "a") as file:
            file.write("listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nshared_buffers = 16MB\nmin_wal_size = 32MB\nmax_wal_size = 64MB\n"
                       "max_parallel_workers_per_gather = 0\n")
        return *as_postgres, f"{binary}/postgres", "-D", data, "-p", self.port

    def client_command(self):
        return "psql", "-qAtX", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"

    def target_pids(self):
        until(lambda: subprocess.run([*self.client_command(), "-c", "SELECT 1"], capture_output=True, check=False).returncode == 0, 60, "PostgreSQL")
        self.session, self.holder = self.client(), self.client()
        self.session.ask("CREATE TABLE hot(id int PRIMARY KEY, n int); INSERT INTO hot SELECT i, 0 FROM generate_series(1, 100) i;")
        return [int(self.session.ask("SELECT pg_backend_pid();")[0])]

    def ready(self):
        self.many = 20_000
        truth = self.slow("SELECT count(md5(i::text)) FROM generate_series(1, 20000) i;")
        self.many = int(self.many * 300 * MS / truth.least)
        super().ready()


class Mariadb(Database):
    name, needs, sleep = "mariadb", "mariadbd", "SLEEP"
    update = "UPDATE hot SET n = n + 1 WHERE id = 1;"
    own = {
        "sleep": Cause((WAIT, BUSY), statement("SELECT SLEEP(0.3);")),
        "compute": Cause((BUSY, WAIT), statement("SELECT BENCHMARK(MANY, MD5('x'));")),
        "row lock": Cause((WAIT, "offcpu>50ms,idle=yes"), database_lock(update, update)),
        "disk": Cause(("syscall:fdatasync>50ms", WAIT), stalls.slow_disk(lambda program: program.slow(Mariadb.update))),
    }

    def command(self):
        data = f"{self.disk.path}/data"
        subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--auth-root-authentication-method=normal",
                        "--innodb-log-file-size=8M"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return ("mariadbd", "--no-defaults", f"--datadir={data}", "--user=root", f"--port={self.port}", "--bind-address=127.0.0.1",
                f"--socket={self.work}/socket", "--innodb-log-file-size=8M", "--innodb-buffer-pool-size=16M")

    def client_command(self):
        return "mariadb", "--no-defaults", "-N", "-B", "-n", "-h", "127.0.0.1", "-P", str(self.port), "-u", "root"

    def ready(self):
        self.session, self.holder = self.client(), self.client()
        self.session.ask("CREATE DATABASE d; USE d; CREATE TABLE hot(id int PRIMARY KEY, n int) ENGINE=InnoDB; INSERT INTO hot VALUES (1, 0), (2, 0);")
        self.holder.ask("USE d;")
        self.many = 100_000
        truth = self.slow("SELECT BENCHMARK(100000, MD5('x'));")
        self.many = int(self.many * 300 * MS / truth.least)
        super().ready()


class Logging(Program):
    """Its log goes through a pipe to a program that reads it, until it is stopped."""

    def causes(self):
        return {**super().causes(), "log pipe": Cause((WAIT, BUSY), type(self).pipe_is_full)}

    def run(self, *command, **options):
        if command[0] != self.needs:
            return super().run(*command, **options)
        self.reader = super().run(PYTHON, "-c", "import os\nwhile os.read(0, 65536): pass", stdin=subprocess.PIPE)
        stalls.fcntl_pipe_size(self.reader.stdin, 4096)
        return super().run(*command, stderr=self.reader.stdin)

    def pipe_is_full(self):
        start, end = stalls.injected(self.work, "stop_server", "pipe", self.reader.pid)
        return Truth(start, end, 0, 0, 0, True)


class Memcached(Logging):
    name, needs, load = "memcached", "memcached", ("line", "get " + " ".join(["key" * 60] * 10))

    def command(self):
        return "memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", self.port, "-U", "0", "-t", "1", "-m", "16", "-vv"


class Mosquitto(Logging):
    name, needs, load = "mosquitto", "mosquitto", ("mqtt",)

    def command(self):
        pathlib.Path(self.work, "conf").write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\nlog_type all\nlog_dest stderr\n")
        return "mosquitto", "-c", f"{self.work}/conf"


class Beanstalkd(Program):
    name, needs, load, needs_disk = "beanstalkd", "beanstalkd", ("beanstalk",), True
    own = {"disk": Cause(("syscall:fsync>50ms", WAIT), stalls.slow_disk())}

    def command(self):
        os.mkdir(f"{self.disk.path}/log")
        return "beanstalkd", "-l", "127.0.0.1", "-p", self.port, "-b", f"{self.disk.path}/log", "-f", "0"


def zeros(program):
    return asked(program.get, "/zeros.txt")


class WebServer:
    """With a file that takes 300 ms to compress."""

    def page(self):
        folder = pathlib.Path(self.work, "www")
        folder.mkdir()
        (folder / "ok").write_text("ok\n")
        with open(folder / "zeros.txt", "wb") as file:
            for n in range(60):
                file.write((b"%d " % n) * 200_000)

    def get(self, path):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Accept-Encoding": "gzip"})
        return urllib.request.urlopen(request, timeout=30).read()


class Nginx(WebServer, Program):
    name, needs, load, needs_peer, version = "nginx", "nginx", ("http", "/peer"), True, ("-v",)
    clients = 1
    own = {
        "compute": Cause((BUSY, WAIT), zeros),
        "peer": Cause(("offcpu>50ms,idle=yes", WAIT), by_late_peer),
    }

    def command(self):
        self.page()
        paths = " ".join(f"{kind}_temp_path {self.work}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        pathlib.Path(self.work, "conf").write_text(
            f"daemon off; worker_processes 1; user root; error_log stderr; pid {self.work}/pid;\nevents {{ worker_connections 64; }}\n"
            f"http {{ access_log off; {paths} gzip on; gzip_comp_level 6; gzip_types text/plain; default_type text/plain; sendfile off;\n"
            f"server {{ listen 127.0.0.1:{self.port}; root {self.work}/www; location /peer {{ proxy_pass http://127.0.0.1:{self.peer}; }} }} }}\n")
        return "nginx", "-c", f"{self.work}/conf", "-e", "stderr"

    def target_pids(self):
        return until(lambda: child_of(self.target.pid))


class Lighttpd(WebServer, Logging):
    name, needs, load, version = "lighttpd", "lighttpd", ("http", "/ok?" + "key" * 300), ("-v",)

    def command(self):
        self.page()
        pathlib.Path(self.work, "conf").write_text(
            f'server.document-root = "{self.work}/www"\nserver.port = {self.port}\nserver.bind = "127.0.0.1"\ndebug.log-request-header = "enable"\n')
        return "lighttpd", "-D", "-f", f"{self.work}/conf"


LUA = """
core.register_service("stall", "http", function(it)
    if it.path == "/sleep" then os.execute("sleep 0.3") end
    local start = os.clock()
    while it.path == "/compute" and os.clock() < start + 0.3 do string.find(string.rep("a", 300), ".-.-b") end
    it:set_status(200)
    it:start_response()
    it:send("ok")
end)
"""


class Haproxy(Program):
    name, needs, load, needs_peer, version = "haproxy", "haproxy", ("http", "/peer"), True, ("-v",)
    clients = 1
    own = {
        "child": Cause((BUSY, WAIT), lambda program: asked(program.get, "/sleep")),
        "compute": Cause((BUSY, WAIT), lambda program: asked(program.get, "/compute")),
        "peer": Cause(("offcpu>50ms,idle=yes", WAIT), by_late_peer),
    }

    def command(self):
        pathlib.Path(self.work, "lua").write_text(LUA)
        pathlib.Path(self.work, "conf").write_text(
            f"global\n insecure-fork-wanted\n nbthread 1\n lua-load {self.work}/lua\ndefaults\n mode http\n timeout connect 5s\n timeout client 20s\n"
            f" timeout server 20s\nfrontend it\n bind 127.0.0.1:{self.port}\n http-request use-service lua.stall if {{ path /sleep /compute }}\n"
            f" default_backend behind\nbackend behind\n server behind 127.0.0.1:{self.peer}\n")
        return "haproxy", "-f", f"{self.work}/conf", "-db"


PROGRAMS = [RedisServer, Postgres, Nginx, Haproxy, Memcached, PythonServer, GoServer, JavaServer, NodeServer, Mosquitto, Lighttpd, Beanstalkd, Mariadb]


def missing(program):
    return not (shutil.which(program.needs) or os.path.exists(program.needs))


def version_of(program):
    command = program.version if os.path.sep in program.version[0] or program.version[0] in ("go", "java", "node") else (program.needs, *program.version)
    if program.name == "mosquitto":
        command = ("mosquitto", "-h")
    if program.name == "beanstalkd":
        command = ("beanstalkd", "-v")
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return ((run.stdout or run.stderr).strip().split("\n") or ["?"])[0]
