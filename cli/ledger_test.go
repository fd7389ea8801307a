package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ledgerDoor gives two lines a call, knows where each reader is by its cursor,
// and after every call that gives lines fails in the next way of three.
type ledgerDoor struct {
	mu    sync.Mutex
	lines int
	fails []func(w http.ResponseWriter, answer string)
	given bool
}

func (d *ledgerDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := 0
	if c := r.URL.Query().Get("cursor"); c != "" {
		fmt.Sscanf(c, "%d-0", &at)
	}
	var rows []string
	for n := at + 1; n <= min(at+2, d.lines); n++ {
		rows = append(rows, fmt.Sprintf(`{"id":"%d-0", "n":%d}`, n, n))
	}
	next := "null"
	if at+2 < d.lines {
		next = fmt.Sprintf(`"%d-0"`, at+2)
	}
	answer := fmt.Sprintf(`{"data":[%s],"next_cursor":%s}`, strings.Join(rows, ","), next)
	if d.given && len(rows) > 0 && len(d.fails) > 0 {
		d.given = false
		d.fails[0](w, answer)
		d.fails = d.fails[1:]
		return
	}
	d.given = len(rows) > 0
	_, _ = io.WriteString(w, answer)
}

// cut ends the connection after a part of an answer.
func cut(t *testing.T, w http.ResponseWriter, part string) {
	conn, buf, err := w.(http.Hijacker).Hijack()
	require.NoError(t, err)
	_, _ = buf.WriteString(part)
	_ = buf.Flush()
	_ = conn.Close()
}

// --follow shows each line once, over a door that refuses, breaks off, does not
// answer or is away for a while, and ends well when it is interrupted.
func TestLedgerFollow(t *testing.T) {
	plain(t)
	d := &ledgerDoor{lines: 9, fails: []func(http.ResponseWriter, string){
		func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusServiceUnavailable) },
		func(w http.ResponseWriter, answer string) {
			cut(t, w, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer[:len(answer)-9]))
		},
		func(w http.ResponseWriter, _ string) { cut(t, w, "") },
	}}
	server := httptest.NewServer(d)
	address := server.Listener.Addr().String()
	t.Setenv("HOLDFAST_URL", server.URL)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs lockedBuffer
	done := make(chan int, 1)
	go func() {
		done <- Main(ctx, []string{"ledger", "CHAIR", "--follow", "--format", "jsonl"}, Streams{Out: &out, Err: &errs}, Services{})
	}()
	shown := func(n int) func() bool { return func() bool { return strings.Count(out.String(), "\n") == n } }
	require.Eventually(t, shown(9), 20*time.Second, 5*time.Millisecond, errs.String())
	server.Close()
	require.Eventually(t, func() bool { return strings.Contains(errs.String(), "refused") }, 20*time.Second, 5*time.Millisecond)
	d.mu.Lock()
	d.lines = 12
	d.mu.Unlock()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: d}}
	server.Start()
	t.Cleanup(server.Close)
	require.Eventually(t, shown(12), 20*time.Second, 5*time.Millisecond, errs.String())
	cancel()
	require.Zero(t, <-done)
	want := ""
	for n := 1; n <= 12; n++ {
		want += fmt.Sprintf("{\"id\":\"%d-0\",\"n\":%d}\n", n, n)
	}
	require.Equal(t, want, out.String())
	require.Empty(t, d.fails)
	for _, outage := range []string{"503", "broke off", "does not answer"} {
		require.Contains(t, errs.String(), outage)
	}
	require.Equal(t, 1, strings.Count(errs.String(), "refused"), "an outage is told once")
}

// What another attempt would meet again ends --follow at once.
func TestLedgerFollowGivesUp(t *testing.T) {
	for status, says := range map[int]string{401: "401", 404: "404"} {
		newFakeDoor(t, status, `{"code":"refused"}`)
		got := run(t, Services{}, "ledger", "CHAIR", "--follow")
		require.Equal(t, exitFailure, got.code)
		require.Contains(t, got.err, says)
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestBadLedgerCommandsSendNothing(t *testing.T) {
	d := newFakeDoor(t, 200, `{}`)
	for _, args := range [][]string{
		{"ledger"},
		{"ledger", "a/b"},
		{"ledger", "CHAIR", "--format", "xml"},
		{"ledger", "CHAIR", "--since", "yesterday"},
		{"ledger", "CHAIR", "--since", "-5m"},
		{"ledger", "CHAIR", "--until", "1h", "--follow"},
		{"statement"},
		{"statement", "a/b"},
	} {
		got := run(t, Services{}, args...)
		require.Equal(t, exitUsage, got.code, "%v: %s", args, got.err)
	}
	require.Zero(t, d.calls)
	for _, args := range [][]string{{"statement", "CHAIR"}, {"ledger", "CHAIR"}} {
		for _, answer := range []string{`{}`, `<html>`} {
			newFakeDoor(t, 200, answer)
			got := run(t, Services{}, args...)
			require.Equal(t, exitFailure, got.code, "%v: %s", args, got.err)
			require.Contains(t, got.err, "the door's answer is no "+args[0])
		}
		newFakeDoor(t, 404, `{"code":"unknown-sku"}`)
		got := run(t, Services{}, args...)
		require.Equal(t, exitFailure, got.code)
		require.Contains(t, got.err, "unknown-sku")
	}
}
