// A server of Go's standard library whose requests stall as they are asked to: server PORT LOG. It logs each stall by its own clock:
// START END TID WHAT, wall-clock ns. A goroutine that keeps its thread has the thread's number, another one 0.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

var mutex sync.Mutex
var sink int

func doSleep(string) { time.Sleep(300 * time.Millisecond) }

func doCompute(string) {
	sum := 0
	for start := time.Now(); time.Since(start) < 300*time.Millisecond; {
		for i := 0; i < 10000; i++ {
			sum = (sum*31 + i) % 65537
		}
	}
	sink = sum
}

func doLock(string) {
	held := make(chan bool)
	go func() {
		mutex.Lock()
		held <- true
		for i := 0; i < 30; i++ {
			time.Sleep(10 * time.Millisecond)
		}
		mutex.Unlock()
	}()
	<-held
	mutex.Lock()
	sink++
	mutex.Unlock()
}

func doFlock(path string) {
	file, _ := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0644)
	syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	file.Close()
}

func doPeer(port string) {
	answer, err := http.Get("http://127.0.0.1:" + port + "/")
	if err == nil {
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}

func doDisk(path string) {
	file, _ := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0644)
	file.WriteString("an order\n")
	file.Sync()
	file.Close()
}

func main() {
	stalls := map[string]func(string){"sleep": doSleep, "compute": doCompute, "lock": doLock, "flock": doFlock, "peer": doPeer, "disk": doDisk}
	http.HandleFunc("/", func(answer http.ResponseWriter, request *http.Request) {
		what, argument, _ := strings.Cut(request.RequestURI[1:], "=")
		if stall := stalls[what]; stall != nil {
			start := time.Now()
			stall(argument)
			end := time.Now()
			file, _ := os.OpenFile(os.Args[2], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0644)
			fmt.Fprintf(file, "%d %d 0 %s\n", start.UnixNano(), end.UnixNano(), what)
			file.Close()
		}
		io.WriteString(answer, "ok\n")
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
