import com.sun.net.httpserver.HttpServer;
import java.io.File;
import java.io.FileOutputStream;
import java.io.FileWriter;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URL;
import java.time.Instant;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;

/** A server of Java's standard library whose requests stall as they are asked to: Server PORT LOG. Four threads. It logs each stall by its own
 * clock: START END TID WHAT, wall-clock ns. */
class Server {
    static final Object lock = new Object();
    static volatile int sink;

    static void compute() {
        int sum = 0;
        for (long start = System.nanoTime(); System.nanoTime() - start < 300_000_000L;) {
            for (int i = 0; i < 10000; i++) sum = (sum * 31 + i) % 65537;
        }
        sink = sum;
    }

    static void holdTheLock(CountDownLatch held) {
        synchronized (lock) {
            held.countDown();
            try {
                for (int i = 0; i < 30; i++) Thread.sleep(10);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    static void waitForLock() {
        synchronized (lock) {
            sink++;
        }
    }

    static void disk(String path) throws Exception {
        try (FileOutputStream file = new FileOutputStream(path, true)) {
            file.write("an order\n".getBytes());
            file.getFD().sync();
        }
    }

    static void flock(String path) throws Exception {
        try (RandomAccessFile file = new RandomAccessFile(path, "rw")) {
            file.getChannel().lock();
        }
    }

    static void peer(String port) throws Exception {
        try (var in = new URL("http://127.0.0.1:" + port + "/").openStream()) {
            in.readAllBytes();
        }
    }

    static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    static void stall(String what, String argument) throws Exception {
        if (what.equals("lock")) {
            CountDownLatch held = new CountDownLatch(1);
            new Thread(() -> holdTheLock(held), "holder").start();
            held.await();
        }
        long start = now();
        if (what.equals("sleep")) Thread.sleep(300);
        else if (what.equals("compute")) compute();
        else if (what.equals("lock")) waitForLock();
        else if (what.equals("flock")) flock(argument);
        else if (what.equals("peer")) peer(argument);
        else if (what.equals("disk")) disk(argument);
        long end = now();
        String tid = new File("/proc/thread-self").getCanonicalFile().getName();
        synchronized (Server.class) {
            try (FileWriter file = new FileWriter(log, true)) {
                file.write(start + " " + end + " " + tid + " " + what + "\n");
            }
        }
    }

    static String log;

    public static void main(String[] args) throws Exception {
        log = args[1];
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(args[0])), 0);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            String[] asked = exchange.getRequestURI().getPath().substring(1).split("=", 2);
            try {
                if (!asked[0].equals("ok")) stall(asked[0], asked.length > 1 ? asked[1] : "");
            } catch (Exception e) {
                e.printStackTrace();
            }
            exchange.sendResponseHeaders(200, 3);
            exchange.getResponseBody().write("ok\n".getBytes());
            exchange.close();
        });
        server.start();
    }
}
