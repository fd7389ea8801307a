// Command holdfast is the whole product in one binary: the worker, the door
// and the operators' commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"holdfast/cli"
	"holdfast/starter"
	"holdfast/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal asks for an orderly stop, a second one ends the process
	std := cli.Streams{Out: os.Stdout, Err: os.Stderr, In: os.Stdin, Terminal: cli.IsTerminal(os.Stdin)}
	os.Exit(cli.Main(ctx, os.Args[1:], std, cli.Services{
		Worker:  worker.Run,
		Starter: starter.Run,
		SetUp:   worker.SetUp,
	}))
}
