package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// progressEvery is how often a build that takes long says that it is alive.
const progressEvery = 15 * time.Second

// buildAll brings the binaries up to date. Go's build cache makes this quick
// when nothing changed.
func buildAll(ctx context.Context, c *console, set settings) error {
	if set.temporalAddress == "" {
		notice := ""
		if _, err := os.Stat(temporalBin); err != nil {
			notice = "building the embedded Temporal server, more than a thousand packages: some minutes of all cores the first time, seconds when Go's build cache has them"
		}
		// Without the tables for debuggers the binary links faster.
		if err := build(ctx, c, temporalBin, notice, "-C", "dev/temporal", "-ldflags=-s -w", "-o", "../../"+temporalBin, "."); err != nil {
			return err
		}
	}
	return build(ctx, c, holdfastBin, "", "-o", holdfastBin, ".")
}

// build runs `go build` and says every 15 s how far it is. A build with a
// notice, or one that took long, also says when it is done.
func build(ctx context.Context, c *console, what, notice string, args ...string) error {
	if notice != "" {
		c.say("%s", notice)
	}
	// -C must come first; -v names each package as it is compiled.
	if args[0] == "-C" {
		args = append([]string{"build", "-C", args[1], "-v"}, args[2:]...)
	} else {
		args = append([]string{"build", "-v"}, args...)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out counter
	cmd.Stdout, cmd.Stderr = &out, &out
	started := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build %s: %w (is Go installed?)", what, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("build %s: %w\n%s", what, err, out.tail())
			}
			if took := time.Since(started); notice != "" || took > progressEvery {
				c.say("built %s in %s", what, max(time.Second, took.Round(time.Second)))
			}
			return nil
		case <-tick.C:
			c.say("building %s: %s, %d packages compiled", what, time.Since(started).Round(time.Second), out.lines())
		}
	}
}

// counter keeps the output of a build.
type counter struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (c *counter) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.Write(b)
}

func (c *counter) lines() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Count(c.buf.Bytes(), []byte("\n"))
}

// tail is the end of the output: the errors come last.
func (c *counter) tail() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.buf.Bytes()
	const most = 4000
	return b[max(0, len(b)-most):]
}
