/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program in Go whose functions are left in every way that there is, to be measured while it does so. It keeps its own
 * record of each call, in the form "NAME START END TID", and prints "result N" at its end: what that is with and without
 * probes must be the same, and so must be that it ends well.
 *
 * usage: goer spin|block|park|hop|grow|throw|large|leave|load
 */
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const calls = 100

type record struct {
	start, end int64
	tid        int
}

var (
	lock    sync.Mutex
	records []record
	result  int
)

/* The clock of the reports, which the standard library keeps to itself. */
func now() int64 {
	var ts syscall.Timespec

	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

func keep(start int64, n int) {
	end := now()
	lock.Lock()
	records = append(records, record{start, end, syscall.Gettid()})
	result += n
	lock.Unlock()
}

//go:noinline
func spin(ns int64) int {
	for end := now() + ns; now() < end; {
	}
	return 1
}

/* In a system call, with its thread. */
//go:noinline
func block(ns int64) int {
	left := syscall.NsecToTimespec(ns)

	for syscall.Nanosleep(&left, &left) == syscall.EINTR {
	}
	return 2
}

/* Its thread does something else meanwhile. */
//go:noinline
func park(ns int64) int {
	time.Sleep(time.Duration(ns))
	return 3
}

/* Every third call makes way for others. */
//go:noinline
func hop(i int) int {
	spin(5000)
	if i%3 == 0 {
		runtime.Gosched()
	}
	spin(5000)
	return 4
}

/* The stack of a new goroutine has no room for that, and is moved several times. */
//go:noinline
func grow(depth int) int {
	var room [512]byte

	room[depth%len(room)] = 1
	if depth == 0 {
		return int(room[0])
	}
	return grow(depth-1) + int(room[depth%len(room)])
}

//go:noinline
func throw(i int) int {
	if i%2 == 0 {
		panic("thrown")
	}
	return 5
}

func catch(i int) (n int) {
	defer func() {
		if recover() != nil {
			n = 6
		}
	}()
	return throw(i)
}

/* More stack than the look for room takes for a little. */
//go:noinline
func large(i int) int {
	var room [100000]byte

	for k := range room {
		room[k] = byte(k + i)
	}
	return int(room[i]) + leaf(i)
}

/* It calls nobody, and does not look for room. */
//go:noinline
func leaf(i int) int {
	if i%2 == 0 {
		return i + 1
	}
	return i - 1
}

//go:noinline
func leave() int {
	fmt.Printf("result %d\n", result)
	os.Exit(0)
	return 7
}

//go:noinline
func work(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum = sum*31 + leaf(i)
	}
	return sum
}

func each(n int, f func(i int) int) {
	for i := 0; i < n; i++ {
		start := now()
		keep(start, f(i))
	}
}

func together(n int, f func()) {
	var group sync.WaitGroup

	for i := 0; i < n; i++ {
		group.Add(1)
		go func() {
			f()
			group.Done()
		}()
	}
	group.Wait()
}

/* Until it is told to end, and then so much more that the result is the same. */
func load() {
	told := make(chan bool)

	fmt.Println("ready")
	go func() {
		bufio.NewReader(os.Stdin).ReadString('\n')
		close(told)
	}()
	together(4, func() {
		for going := true; going; {
			n := work(1000) + grow(20) + catch(0)
			select {
			case <-told:
				lock.Lock()
				result += n
				lock.Unlock()
				going = false
			default:
				runtime.Gosched()
			}
		}
	})
}

func main() {
	debug.SetGCPercent(-1)
	switch os.Args[1] {
	case "spin":
		each(calls, func(int) int { return spin(100000) })
	case "block":
		each(calls/10, func(int) int { return block(20000000) })
	case "park":
		each(calls/10, func(int) int { return park(200000000) })
	case "hop":
		together(8, func() { each(calls, hop) })
	case "grow":
		each(calls, func(int) int {
			n := 0
			together(1, func() { n = grow(100) })
			return n
		})
	case "throw":
		each(calls, catch)
	case "large":
		each(calls, func(i int) int {
			n := 0
			together(1, func() { n = large(i) })
			return n
		})
	case "leave":
		leave()
	case "load":
		load()
	}
	for _, r := range records {
		fmt.Printf("%s %d %d %d\n", os.Args[1], r.start, r.end, r.tid)
	}
	fmt.Printf("result %d\n", result)
}
