package redis

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"holdfast/contract"
)

// witness reads MONITOR: which runs of scripts the server has executed. That
// tells whether a try that was not answered ever arrived, and that it took effect
// before it was read here. A run is known by its nonce.
type witness struct {
	t    *testing.T
	conn net.Conn
	mu   sync.Mutex
	// ran says when a run was read, by its nonce as MONITOR writes it; marks too.
	// order has them as the server executed them.
	ran   map[string]time.Time
	order []string
	beats map[string]beat
}

// beat is when a mark was sent and answered.
type beat struct{ sent, answered time.Time }

// watch begins to read. All scripts are there from now on, so that a run that
// MONITOR names is one that was executed.
func watch(t *testing.T) *witness {
	t.Helper()
	for _, s := range all {
		require.NoError(t, s.shebang.Load(t.Context(), shared).Err())
	}
	conn, err := net.Dial("tcp", shared.(*goredis.Client).Options().Addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = conn.Write([]byte("MONITOR\r\n"))
	require.NoError(t, err)
	lines := bufio.NewReaderSize(conn, 1<<16)
	first, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", first)
	w := &witness{t: t, conn: conn, ran: map[string]time.Time{}, beats: map[string]beat{}}
	go func() {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			if run := runOf(line); run != "" {
				w.mu.Lock()
				w.ran[run] = time.Now()
				w.order = append(w.order, run)
				w.mu.Unlock()
			}
		}
	}()
	return w
}

// runOf is the nonce of a line of MONITOR, or the text of an ECHO.
func runOf(line string) string {
	if _, rest, ok := strings.Cut(line, `] "echo" "`); ok {
		return strings.TrimSuffix(rest, "\"\r\n")
	}
	_, rest, ok := strings.Cut(line, keyPrefix)
	if !ok {
		return ""
	}
	sku, rest, _ := strings.Cut(rest, keyTagClose)
	_, rest, _ = strings.Cut(rest, key(sku, keyNames[len(keyNames)-1])+`" "`)
	nonce, _, ok := strings.Cut(rest, `" "`+contract.SKUNumber(sku)+`" "`)
	if !ok {
		return ""
	}
	return nonce
}

// caughtUp waits until everything that the server has executed was read.
func (w *witness) caughtUp() {
	mark := fmt.Sprint("mark ", time.Now().UnixNano())
	require.NoError(w.t, shared.Echo(context.Background(), mark).Err())
	require.Eventually(w.t, func() bool { return !w.executed(mark).IsZero() }, time.Minute, time.Millisecond, "MONITOR says nothing")
}

// keepTime marks the server's order with instants of this clock, until ctx ends.
func (w *witness) keepTime(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		mark, sent := fmt.Sprint("beat ", n), time.Now()
		if shared.Echo(ctx, mark).Err() != nil {
			continue // ctx has ended, or nobody is the wiser for this one
		}
		w.mu.Lock()
		w.beats[mark] = beat{sent, time.Now()}
		w.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
}

// executed is an instant by which the run was executed, zero when it was not.
func (w *witness) executed(run string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ran[run]
}

// window is when a run was executed, between two instants.
type window struct{ from, to int64 }

// windows bounds the runs by the server's order: each was executed after whatever stands
// before it was sent, and before what stands after it was answered.
func (w *witness) windows(done []operation, started time.Time) map[string]window {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent, answered := map[string]int64{}, map[string]int64{}
	for mark, b := range w.beats {
		sent[mark], answered[mark] = int64(b.sent.Sub(started)), int64(b.answered.Sub(started))
	}
	for _, op := range done {
		sent[op.run], answered[op.run] = op.last, op.answer
		for _, try := range op.unanswered {
			sent[try.run] = try.from
		}
	}
	bounds := make(map[string]window, len(w.order))
	last, first := int64(0), int64(math.MaxInt64)
	for _, run := range w.order {
		last = max(last, sent[run])
		bounds[run] = window{from: last}
	}
	for _, run := range slices.Backward(w.order) {
		bounds[run] = window{bounds[run].from, first}
		if at, ok := answered[run]; ok {
			first = min(first, at)
		}
	}
	return bounds
}

// quoted writes a nonce as MONITOR does.
func quoted(nonce []byte) string {
	var b strings.Builder
	for _, c := range nonce {
		if i := strings.IndexByte("\\\"\n\r\t\a\b", c); i >= 0 {
			b.WriteString(`\` + `\"nrtab`[i:i+1])
		} else if c >= ' ' && c <= '~' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}

// tries notes the nonce of each script that a call sends, in the string that its
// context carries.
type tries struct{}

type nonceKey struct{}

func (tries) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (tries) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

func (tries) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if to, ok := ctx.Value(nonceKey{}).(*string); ok && cmd.Name() == "evalsha" {
			nonce, _ := cmd.Args()[3+len(keyNames)].([]byte)
			*to = quoted(nonce)
		}
		return next(ctx, cmd)
	}
}
