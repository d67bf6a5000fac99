import java.io.File;
import java.io.FileWriter;
import java.io.RandomAccessFile;
import java.time.Instant;

/** A Java program that stalls: App ROW [FIFO]. Its thread "worker" has a turn of 10 ms; from when the file `go` is there, each so often one stalls.
 * It logs in `truth` (see lib.sh). */
class App {
    static final Object lock = new Object();
    static RandomAccessFile fifo, asked;

    static void readTheFifo() throws Exception {
        asked.write('x');
        fifo.read();
    }

    static void holdTheLock() {
        try {
            while (true) {
                Thread.sleep(300);
                synchronized (lock) {
                    for (int i = 0; i < 30; i++) Thread.sleep(10);
                }
            }
        } catch (InterruptedException e) {
            return;
        }
    }

    static void waitForLock() {
        synchronized (lock) {
            lock.notify();
        }
    }

    static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    /** As long as it took, but for what the machine may have taken of it. */
    static void logged(String row) throws Exception {
        long start = now();
        if (row.equals("java-read")) readTheFifo();
        else if (row.equals("java-sleep")) Thread.sleep(300);
        else waitForLock();
        long end = now();
        if (end - start < 150_000_000) return;
        String tid = new File("/proc/thread-self").getCanonicalFile().getName();
        try (FileWriter file = new FileWriter("truth", true)) {
            file.write(start + " " + end + " " + (end - start - 20_000_000) + " " + tid + " " + row + "\n");
        }
    }

    static void work(String row) {
        try {
            for (int turn = 1;; turn++) {
                Thread.sleep(10);
                if ((row.equals("java-lock") || turn % 30 == 0) && new File("go").exists()) logged(row);
            }
        } catch (Exception e) {
            e.printStackTrace();
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 1) {
            fifo = new RandomAccessFile(args[1], "rw");
            asked = new RandomAccessFile(args[1] + ".asked", "rw");
        }
        new Thread(() -> work(args[0]), "worker").start();
        if (args[0].equals("java-lock")) new Thread(App::holdTheLock, "holder").start();
        new File("prepared").createNewFile();
    }
}
