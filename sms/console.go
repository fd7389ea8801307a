package sms

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Console prints texts in place of sending them, and appends each to a file as
// one JSON line. Its acceptance counts as sent.
type Console struct {
	out  io.Writer
	path string
	mu   sync.Mutex
}

// NewConsole returns a console sender that prints to out and appends to the
// file path, which it makes with its folder; an empty path writes no file.
func NewConsole(out io.Writer, path string) (*Console, error) {
	c := &Console{out: out, path: path}
	if path == "" {
		return c, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("sms.outbox %s: %w", path, err)
	}
	return c, c.append(nil)
}

type consoleLine struct {
	At      time.Time `json:"at"`
	To      string    `json:"to"`
	Body    string    `json:"body"`
	Cause   string    `json:"cause"`
	EntryID string    `json:"entry_id"`
	HoldID  string    `json:"hold_id"`
	SID     string    `json:"sid"`
}

// Send prints and files a text. A file that cannot be written is tried again
// later: whoever reads it counts on every text being there.
func (c *Console) Send(_ context.Context, t Text) (Receipt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := consoleLine{
		At: time.Now().UTC(), To: t.To, Body: t.Body, Cause: t.Cause,
		EntryID: t.EntryID, HoldID: t.HoldID, SID: "console-" + rand.Text(),
	}
	raw, err := json.Marshal(line)
	if err != nil {
		return Receipt{}, &Error{Class: Never, Reason: "cannot be written down: " + err.Error()}
	}
	if err := c.append(append(raw, '\n')); err != nil {
		return Receipt{}, &Error{Class: Later, Reason: err.Error()}
	}
	fmt.Fprintf(c.out, "text to %s (%s): %s\n", t.To, t.Cause, t.Body)
	return Receipt{ID: line.SID, Sent: true, Arrived: true}, nil
}

// Find answers no: what Send has filed it has also answered.
func (*Console) Find(context.Context, Text, time.Time) (Receipt, bool, error) {
	return Receipt{}, false, nil
}

// append adds a whole line in one write, so that a reader never sees half of
// one.
func (c *Console) append(line []byte) error {
	if c.path == "" {
		return nil
	}
	f, err := os.OpenFile(c.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("sms.outbox: %w", err)
	}
	_, err = f.Write(line)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
