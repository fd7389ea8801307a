package e2e

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// lossy is a connection to the door that loses answers.
type lossy struct {
	url string
	// early breaks the connection as soon as the request is through; otherwise
	// the door has answered, and the answer is dropped here.
	early bool
	lost  sync.WaitGroup
}

// newLossy listens until the test ends.
func newLossy(t *testing.T, door string, early bool) *lossy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	p := &lossy{url: "http://" + l.Addr().String(), early: early}
	p.lost.Add(1)
	go func() {
		defer p.lost.Done()
		down, err := l.Accept()
		if err != nil {
			return
		}
		defer down.Close()
		up, err := net.Dial("tcp", strings.TrimPrefix(door, "http://"))
		if err != nil {
			return
		}
		defer up.Close()
		p.lose(down, up)
	}()
	return p
}

// lose passes one request on and its answer not.
func (p *lossy) lose(down, up net.Conn) {
	buf := make([]byte, 64<<10)
	n, err := down.Read(buf)
	for err == nil && !bytes.Contains(buf[:n], []byte("}")) { // the end of a small JSON body
		var more int
		more, err = down.Read(buf[n:])
		n += more
	}
	if err != nil {
		return
	}
	if _, err := up.Write(buf[:n]); err != nil || p.early {
		return
	}
	if _, err := io.ReadAtLeast(up, buf, len("HTTP/1.1 200 OK")); err != nil {
		return
	}
}
