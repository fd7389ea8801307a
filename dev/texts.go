package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"time"
)

const tailPause = 200 * time.Millisecond

// text is what the console sender writes of each text, as far as it is shown.
type text struct {
	To   string `json:"to"`
	Body string `json:"body"`
}

// tail follows the texts file, which may not exist yet.
type tail struct {
	path string
	at   int64 // bytes read so far
}

// tailFrom begins at the file's present end: old texts are not shown again.
func tailFrom(path string) (*tail, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return &tail{path: path}, nil
	}
	if err != nil {
		return nil, err
	}
	return &tail{path: path, at: info.Size()}, nil
}

// follow hands each new text to show until ctx ends.
func (t *tail) follow(ctx context.Context, show func(text)) {
	tick := time.NewTicker(tailPause)
	defer tick.Stop()
	for {
		t.read(show)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// read shows the whole lines that are new. A file that cannot be read now is
// tried again at the next tick.
func (t *tail) read(show func(text)) {
	f, err := os.Open(t.path)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(t.at, io.SeekStart); err != nil {
		return
	}
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return // a line without its end is read again when it is whole
		}
		t.at += int64(len(line))
		var one text
		if json.Unmarshal([]byte(line), &one) != nil {
			one = text{Body: strings.TrimSpace(line)} // show it rather than drop it
		}
		show(one)
	}
}
