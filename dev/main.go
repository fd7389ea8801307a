// Command dev runs a whole Holdfast on this machine: Redis, the embedded
// Temporal with its UI, worker and door. `make dev` starts it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"holdfast/dev/stack"
)

const (
	stateDir    = ".dev"
	holdfastBin = ".bin/holdfast"
	temporalBin = ".bin/temporal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the next one ends this process at once, and with
	// it the children.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Stdout); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

// run runs the stack until ctx ends.
func run(ctx context.Context, out io.Writer) error {
	set, err := readSettings(os.Environ())
	if err != nil {
		return err
	}
	if _, err := os.Stat("dev/temporal/go.mod"); err != nil {
		return errors.New("run this from the root of the checkout")
	}
	unlock, err := lock(stateDir)
	if err != nil {
		return err
	}
	defer unlock()
	console := &console{out: out}
	if set.reset {
		if err := wipe(stateDir); err != nil {
			return err
		}
		console.say("RESET=1: %s is empty", stateDir)
		if set.redisAddress != "" || set.temporalAddress != "" {
			console.say("what runs elsewhere (REDIS_ADDRESS, TEMPORAL_ADDRESS) is not reset")
		}
	}
	if err := buildAll(ctx, console, set); err != nil {
		return err
	}

	textsFile := filepath.Join(stateDir, stack.TextsName)
	texts, err := tailFrom(textsFile)
	if err != nil {
		return err
	}
	if set.twilio {
		stub, err := startTwilio(&set, textsFile)
		if err != nil {
			return err
		}
		defer func() { _ = stub.Close() }() // nothing of it is kept
		console.say("%s", stubNotice(stub))
	}
	opts := set.options(stateDir)
	opts.Output = console.child
	if opts.External.Redis == "" {
		if _, err := exec.LookPath("redis-server"); err != nil {
			if opts.External.Temporal != "" {
				return fmt.Errorf("%s needs a real Redis beside it: install redis-server or set %s", varTemporalAddress, varRedisAddress)
			}
			opts.RedisStandIn = true
			console.say("redis-server is not installed: a stand-in takes its place. It forgets everything at the end (Temporal does so too) and has no fence. Debian has the real one: apt-get install redis-server")
		}
	}
	console.say("starting Redis, Temporal, worker and door")
	s, err := stack.Start(ctx, opts)
	var taken *stack.PortTakenError
	if errors.As(err, &taken) {
		return fmt.Errorf("%w: end what runs there, or choose another port with %s", err, portVariable(taken.Child))
	}
	if err != nil {
		return err
	}
	defer func() {
		console.say("stopping")
		if err := s.Close(); err != nil {
			console.say("%v", err)
		}
		if opts.RedisStandIn {
			console.say("stopped; the stand-in has forgotten everything")
			return
		}
		console.say("stopped; the state stays in %s", stateDir)
	}()

	err = awaitGate(ctx, s.URL(), func() {
		console.say("the state is from an earlier start: the gate stays closed until it has been checked against Temporal, some seconds")
	})
	if err != nil && ctx.Err() == nil {
		console.say("the gate does not open for every SKU: %v", err)
	}
	if err := openGoods(ctx, s.URL()); err != nil && ctx.Err() == nil {
		console.say("CHAIR and TEE are not ready: %v", err)
	}
	if ctx.Err() != nil {
		return nil
	}
	console.banner(s)
	texts.follow(ctx, console.text)
	return nil
}

// lock keeps a second `make dev` out of the state of this one.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("`make dev` runs here already: %s is locked", f.Name()), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

const lockName = "lock"

// wipe empties dir but for the lock.
func wipe(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == lockName {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
