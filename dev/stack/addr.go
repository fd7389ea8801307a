package stack

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Free ports are drawn below the range from which systems take the local ports
// of outgoing connections: else a connection may sit on the port of a child
// just while the child is down.
const firstFreePort, freePortCount = 15_000, 15_000

// given are the ports that this process has handed out. Nobody may listen there yet, and
// of two children with one port the other answers for the one that cannot start.
var given sync.Map

// freeAddr returns an address of the loopback that nobody listens on, and that it has
// given to nobody.
func freeAddr() (string, error) {
	last := errors.New("all that were tried were given before")
	for range 1000 {
		port := firstFreePort + rand.IntN(freePortCount)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if last = listenable(addr); last == nil {
			return addr, nil
		}
	}
	return "", fmt.Errorf("no free port found: %w", last)
}

func listenable(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return l.Close()
}

// claimPatience is how long a port may stay taken: the children of a
// supervisor that was killed a moment ago are still on their way out.
const claimPatience = time.Second

// claim returns addr when child can listen there, and a free address when addr
// is empty.
func claim(child, addr string) (string, error) {
	if addr == "" {
		return freeAddr()
	}
	err := listenable(addr)
	for until := time.Now().Add(claimPatience); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(until); {
		time.Sleep(probePause)
		err = listenable(addr)
	}
	switch {
	case err == nil:
		return addr, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return "", &PortTakenError{Child: child, Addr: addr}
	default:
		return "", fmt.Errorf("the %s cannot listen on %q: %w", child, addr, err)
	}
}

// split takes an address that could be listened on apart.
func split(addr string) (host, port string) {
	host, port, _ = net.SplitHostPort(addr) // a bad one never got past claim
	return host, port
}
