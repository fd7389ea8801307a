package stack

import "syscall"

// dieWithParent also gives the child a process group of its own: a Ctrl-C at
// the terminal must reach only the supervisor, which stops the door first.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
