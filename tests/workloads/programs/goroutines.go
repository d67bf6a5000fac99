// Goroutines of one thread: they give each other the turn over channels, from several calls deep; a panic that is recovered.
package main

var worked int

//go:noinline
func work() {
	worked++
}

//go:noinline
func send(to chan int, depth int) {
	if depth > 0 {
		send(to, depth-1)
	} else {
		to <- depth
	}
	work()
}

//go:noinline
func produce(to chan int) {
	for i := 0; i < 3; i++ {
		send(to, i)
	}
	close(to)
}

//go:noinline
func receive(from chan int) bool {
	_, more := <-from
	return more
}

//go:noinline
func consume(from chan int) int {
	n := 0
	for receive(from) {
		n++
	}
	return n
}

//go:noinline
func thrower(depth int) {
	if depth == 0 {
		panic("thrown")
	}
	thrower(depth - 1)
	work()
}

//go:noinline
func recovered() {
	if recover() != nil {
		work()
	}
}

//go:noinline
func catcher() {
	defer recovered()
	thrower(2)
}

//go:noinline
func main() {
	values := make(chan int)
	go produce(values)
	n := consume(values)
	catcher()
	work()
	if n != 3 || worked != 8 {
		panic("wrong")
	}
}
