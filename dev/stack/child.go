package stack

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// readyTimeout bounds the wait for a child that never gets ready.
	readyTimeout = 60 * time.Second
	// stopTimeout is what docker-compose.yml gives the worker, which takes up to 25 s of it;
	// the door does not drain here.
	stopTimeout = 30 * time.Second
	probePause  = 30 * time.Millisecond

	// A child that dies again and again is started at growing distances, one
	// that ran for steady begins anew.
	firstPause = 250 * time.Millisecond
	maxPause   = 10 * time.Second
	steady     = 30 * time.Second
)

// Child is one process of a stack. Its methods may be called from several
// goroutines.
type Child struct {
	name   string
	path   string
	args   []string
	env    []string
	probe  func(ctx context.Context, p *process) error // nil: the child serves
	out    *output
	report func(line string)
	// supervise starts the child again when it dies, until closed ends.
	supervise bool
	closed    <-chan struct{}

	mu      sync.Mutex
	current *process // the last one started, nil before the first
	want    bool     // the child should run
	served  bool     // it has been ready once: one that never was is set up wrongly
	pause   time.Duration
}

// process is one life of a child.
type process struct {
	cmd     *exec.Cmd
	started time.Time
	gone    chan struct{} // closed when the process has ended
	err     error         // how it ended, to be read after gone
	lines   *lines
}

func (p *process) alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

// Name is one of the constants Redis, Temporal, Worker and Door.
func (c *Child) Name() string { return c.name }

// PID is the running process' id, 0 when the child is down.
func (c *Child) PID() int {
	if p := c.running(); p != nil {
		return p.cmd.Process.Pid
	}
	return 0
}

// running is the living process, or nil.
func (c *Child) running() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current.alive() {
		return c.current
	}
	return nil
}

// Start starts a child that is down and waits until it is ready or ctx ends.
// A child that runs is only waited for.
func (c *Child) Start(ctx context.Context) error {
	c.mu.Lock()
	c.want = true
	err := c.launch()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.Ready(ctx)
}

// launch starts the process unless it runs. The caller holds mu.
func (c *Child) launch() error {
	if c.current.alive() {
		return nil
	}
	p := &process{started: time.Now(), gone: make(chan struct{}), lines: &lines{to: c.out}}
	p.cmd = exec.Command(c.path, c.args...)
	p.cmd.Env = c.env
	p.cmd.Stdout, p.cmd.Stderr = p.lines, p.lines
	p.cmd.WaitDelay = time.Second // for a process of its own that keeps the pipe
	if err := spawn(p.cmd); err != nil {
		return fmt.Errorf("start %s: %w", c.name, err)
	}
	c.current = p
	go func() {
		p.err = p.cmd.Wait()
		close(p.gone)
		c.ended(p)
	}()
	return nil
}

// ended starts a child again that should run.
func (c *Child) ended(p *process) {
	c.mu.Lock()
	if !c.supervise || !c.want || !c.served || c.current != p {
		c.mu.Unlock()
		return
	}
	if time.Since(p.started) > steady || c.pause == 0 {
		c.pause = firstPause
	}
	pause := c.pause
	c.pause = min(2*c.pause, maxPause)
	c.mu.Unlock()

	c.report(fmt.Sprintf("%s died (%s); it starts again in %s", c.name, p.how(), pause))
	select {
	case <-c.closed:
		return
	case <-time.After(pause):
	}
	c.mu.Lock()
	if !c.want || c.current != p {
		c.mu.Unlock()
		return
	}
	err := c.launch()
	c.mu.Unlock()
	if err != nil {
		c.report(err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	switch err := c.Ready(ctx); {
	case err == nil:
		c.report(c.name + " is back")
	case !errors.Is(err, errDown): // on purpose meanwhile
		c.report(err.Error())
	}
}

// how a process that is gone ended, in a few words.
func (p *process) how() string {
	if p.err == nil {
		return "exit status 0"
	}
	return p.err.Error()
}

// Ready waits until the child serves or ctx ends: Redis answers PING, Temporal
// is healthy and knows its namespace, the worker polls, the door answers
// /healthz.
func (c *Child) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(probePause)
	defer tick.Stop()
	for {
		err := c.probeOnce(ctx)
		if err == nil {
			c.mu.Lock()
			c.served = true
			c.mu.Unlock()
			return nil
		}
		if errors.Is(err, errDown) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not get ready (%w): %w%s", c.name, ctx.Err(), err, c.lastWords())
		case <-tick.C:
		}
	}
}

var errDown = errors.New("is down")

func (c *Child) probeOnce(ctx context.Context) error {
	c.mu.Lock()
	p, want, again := c.current, c.want, c.supervise && c.served
	c.mu.Unlock()
	if !p.alive() {
		switch {
		case p == nil || !want:
			return fmt.Errorf("%s %w", c.name, errDown)
		case !again:
			return fmt.Errorf("%s %w: %s%s", c.name, errDown, p.how(), c.lastWords())
		}
		return fmt.Errorf("it died: %s", p.how())
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.probe(ctx, p)
}

// lastWords are the last lines of the child, for an error message.
func (c *Child) lastWords() string {
	c.mu.Lock()
	p := c.current
	c.mu.Unlock()
	if p == nil {
		return ""
	}
	var words strings.Builder
	for _, line := range p.lines.last() {
		fmt.Fprintf(&words, "\n  %.300s", line)
	}
	return words.String()
}

// down makes the child unwanted and returns its living process, or nil.
func (c *Child) down() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.want, c.pause = false, 0
	if c.current.alive() {
		return c.current
	}
	return nil
}

// Kill sends SIGKILL and waits until the process is gone. The child stays down
// until Start.
func (c *Child) Kill() {
	if p := c.down(); p != nil {
		p.kill()
		<-p.gone
	}
}

// kill cannot fail but for a process that is gone already.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// Stop sends SIGTERM and waits until the process is gone; one that has not
// ended after 30 s is killed, and the error says so. The child stays down
// until Start.
func (c *Child) Stop() error {
	p := c.down()
	if p == nil {
		return nil
	}
	// Both fail only for a process that is gone. A suspended one must first go
	// on before it can stop.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	select {
	case <-p.gone:
		return nil
	case <-time.After(stopTimeout):
	}
	p.kill()
	<-p.gone
	return fmt.Errorf("%s did not stop within %s and was killed%s", c.name, stopTimeout, c.lastWords())
}

// Suspend stops the process in its tracks (SIGSTOP): it keeps its connections
// and answers nothing. Resume lets it go on. Both are errors when the child is
// down.
func (c *Child) Suspend() error { return c.signal(syscall.SIGSTOP) }

// Resume is the end of Suspend.
func (c *Child) Resume() error { return c.signal(syscall.SIGCONT) }

func (c *Child) signal(sig syscall.Signal) error {
	p := c.running()
	if p == nil {
		return fmt.Errorf("%s %w", c.name, errDown)
	}
	return p.cmd.Process.Signal(sig)
}
