// A Go program that stalls: app ROW FIFO. Its main loop has a turn of 10 ms; from when the file `go` is there, each so often one stalls. It
// logs in `truth` (see lib.sh).
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

var asked, fifo int
var mutex sync.Mutex

//go:noinline
func readTheFifo() {
	byte := make([]byte, 1)
	syscall.Write(asked, byte)
	syscall.Read(fifo, byte)
}

//go:noinline
func waitForMutex() {
	go func() {
		mutex.Lock()
		time.Sleep(300 * time.Millisecond)
		mutex.Unlock()
	}()
	time.Sleep(5 * time.Millisecond)
	mutex.Lock()
	mutex.Unlock()
}

//go:noinline
func hogTheThread() int {
	sum := 0
	for start := time.Now(); time.Since(start) < 300*time.Millisecond; {
		for i := 0; i < 10000; i++ {
			sum = (sum*31 + i) % 65537
		}
	}
	return sum
}

// As long as it took, but for what the machine may have taken of it.
func logged(name string, stall func()) {
	start := time.Now()
	stall()
	took := time.Since(start)
	if took > 150*time.Millisecond {
		file, _ := os.OpenFile("truth", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0644)
		fmt.Fprintf(file, "%d %d %d %d %s\n", start.UnixNano(), start.Add(took).UnixNano(), (took - 20*time.Millisecond).Nanoseconds(), syscall.Gettid(), name)
		file.Close()
	}
}

func main() {
	runtime.LockOSThread()
	if len(os.Args) > 2 {
		fifo, _ = syscall.Open(os.Args[2], syscall.O_RDWR, 0)
		asked, _ = syscall.Open(os.Args[2]+".asked", syscall.O_RDWR, 0)
	}
	stall := map[string]func(){"go-read": readTheFifo, "go-mutex": waitForMutex, "go-busy": func() { hogTheThread() }}[os.Args[1]]
	os.WriteFile("prepared", nil, 0644)
	for turn := 1; ; turn++ {
		time.Sleep(10 * time.Millisecond)
		if _, err := os.Stat("go"); err == nil && turn%30 == 0 {
			logged(os.Args[1], stall)
		}
	}
}
