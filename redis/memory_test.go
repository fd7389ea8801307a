package redis

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// mostMemory is what this process may take. The search for an order of a history
// that has none may grow without end, and would take the machine with it.
const mostMemory = 4 << 30

// boundMemory ends the process when it has grown beyond mostMemory. Without
// /proc nothing is bounded.
func boundMemory() {
	for range time.Tick(100 * time.Millisecond) {
		raw, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			return
		}
		fields := strings.Fields(string(raw))
		if len(fields) < 2 {
			return
		}
		pages, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return
		}
		if size := pages * int64(os.Getpagesize()); size > mostMemory {
			fmt.Fprintf(os.Stderr, "the tests have grown to %d MiB, more than %d MiB: ended\n", size>>20, mostMemory>>20)
			closeBackend()
			os.Exit(1)
		}
	}
}
