//go:build !linux

package stack

import "syscall"

// dieWithParent gives the child a process group of its own. Only Linux can end
// children with a parent that was killed by SIGKILL; elsewhere they stay.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
