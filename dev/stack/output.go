package stack

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// keepLines is how many lines of a process an error message shows.
const keepLines = 12

// output is where the lines of one child go: its log file and Options.Output.
type output struct {
	child string
	sink  func(child, line string) // nil: dropped

	mu   sync.Mutex
	file *os.File
}

func openOutput(dir, child string, sink func(child, line string)) (*output, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, child+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &output{child: child, sink: sink, file: f}, nil
}

func (o *output) line(s string) {
	o.mu.Lock()
	// A full disk must not stop the child, which waits for its pipe to drain.
	_, _ = fmt.Fprintln(o.file, s)
	o.mu.Unlock()
	if o.sink != nil {
		o.sink(o.child, s)
	}
}

func (o *output) close() error { return o.file.Close() }

// lines cuts what one process writes into lines and keeps the last of them.
type lines struct {
	to *output

	mu      sync.Mutex
	partial []byte
	kept    []string
	ready   bool // a line "ready …" has been seen
}

// Write never fails: an error would end the copying, and with it the child.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.partial = append(l.partial, b...)
	var whole []string
	for {
		line, rest, ok := bytes.Cut(l.partial, []byte("\n"))
		if !ok {
			break
		}
		whole = append(whole, strings.TrimRight(string(line), "\r"))
		l.partial = rest
	}
	for _, s := range whole {
		l.ready = l.ready || strings.HasPrefix(s, "ready ")
		l.kept = append(l.kept, s)
	}
	if extra := len(l.kept) - keepLines; extra > 0 {
		l.kept = slices.Delete(l.kept, 0, extra)
	}
	l.mu.Unlock()
	for _, s := range whole {
		l.to.line(s)
	}
	return len(b), nil
}

func (l *lines) last() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}

func (l *lines) saidReady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready
}
