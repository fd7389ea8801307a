package shop

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"sync"
	"time"
)

// Text is one text as the console sender wrote it down.
type Text struct {
	At      time.Time `json:"at"`
	To      string    `json:"to"`
	Body    string    `json:"body"`
	Cause   string    `json:"cause"`
	EntryID string    `json:"entry_id"`
	HoldID  string    `json:"hold_id"`
	SID     string    `json:"sid"`
}

var reserveLink = regexp.MustCompile(`https?://[^/\s]+/r/[A-Za-z0-9_-]+`)

// Link is the reserve link of an offer's text, "" in any other text.
func (t Text) Link() string { return reserveLink.FindString(t.Body) }

// Outbox is the console sender's file.
type Outbox struct {
	Path string

	mu    sync.Mutex
	at    int64
	texts []Text
}

// Texts are all texts so far. A last line that is still being written is left
// for the next reading.
func (o *Outbox) Texts() ([]Text, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, err := os.Open(o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(o.at, io.SeekStart); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return o.texts, nil
		}
		if err != nil {
			return nil, err
		}
		var t Text
		if err := json.Unmarshal(line, &t); err != nil {
			return nil, fmt.Errorf("%s: %w in %q", o.Path, err, line)
		}
		o.at += int64(len(line))
		o.texts = append(o.texts, t)
	}
}

// OfferTo is the last text with a link that went to an entry.
func (o *Outbox) OfferTo(entryID string) (Text, bool, error) {
	texts, err := o.Texts()
	for i := len(texts) - 1; i >= 0; i-- {
		if t := texts[i]; t.EntryID == entryID && t.Link() != "" {
			return t, true, nil
		}
	}
	return Text{}, false, err
}
