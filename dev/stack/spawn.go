package stack

import (
	"os/exec"
	"runtime"
	"sync"
)

// onSpawner runs f on the thread that starts all children. Linux sends a
// child's death signal when the *thread* that started it ends, not when the
// process does: so this thread is kept for the whole life of the process.
var onSpawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// spawn starts cmd so that it dies with this process, however that ends.
func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = dieWithParent()
	done := make(chan error, 1)
	onSpawner() <- func() { done <- cmd.Start() }
	return <-done
}
