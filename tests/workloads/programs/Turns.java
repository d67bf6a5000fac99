/* Two named threads whose calls are known: step calls middle twice, middle calls leaf three times. */
public class Turns {
    static volatile int worked;

    static void leaf() { worked++; }
    static void middle() { leaf(); leaf(); leaf(); }
    static void step() { middle(); middle(); }

    static void run() {
        for (;;) {
            step();
            try { Thread.sleep(1); } catch (InterruptedException e) { return; }
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 30000; i++) step(); // until it is compiled
        new Thread(Turns::run, "turns-a").start();
        new Thread(Turns::run, "turns-b").start();
        Thread.sleep(500);
        System.out.println("ready");
        System.out.flush();
        Thread.sleep(1000000);
    }
}
