// Command temporal is a whole Temporal server with its UI in one process, for
// `make dev` and the end-to-end tests. It is a module of its own: the server
// brings some 200 modules, and its version does not compile beside the SDK
// that the product uses. Over the wire the two agree.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
)

// options are the flags.
type options struct {
	db         string
	ip         string
	port       int
	uiPort     int
	uiCodec    string
	namespace  string
	attributes attributes
	retention  time.Duration
	logLevel   string
}

// attributes are custom search attributes by name.
type attributes map[string]enumspb.IndexedValueType

func (a attributes) String() string { return "" }

// Set adds one Name=Type, where Type is a word such as Keyword or KeywordList.
func (a attributes) Set(s string) error {
	name, word, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return fmt.Errorf("%q is not Name=Type", s)
	}
	t, err := enumspb.IndexedValueTypeFromString(word)
	if err != nil || t == enumspb.INDEXED_VALUE_TYPE_UNSPECIFIED {
		return fmt.Errorf("%q is no type of a search attribute: use Keyword, KeywordList, Int, Double, Bool, Datetime or Text", word)
	}
	a[name] = t
	return nil
}

func parse(args []string, errOut io.Writer) (options, error) {
	o := options{attributes: attributes{}}
	f := flag.NewFlagSet("temporal", flag.ContinueOnError)
	f.SetOutput(errOut)
	f.StringVar(&o.db, "db", "", "folder of the two SQLite files; empty keeps all state in memory")
	f.StringVar(&o.ip, "ip", "127.0.0.1", "address to listen on")
	f.IntVar(&o.port, "port", 7233, "port of the frontend")
	f.IntVar(&o.uiPort, "ui-port", 0, "port of the UI; 0 serves none")
	f.StringVar(&o.uiCodec, "ui-codec-endpoint", "", "where the UI has payloads decrypted, as http://host:port/codec; empty for nowhere")
	f.StringVar(&o.namespace, "namespace", "default", "namespace that must exist")
	f.Var(o.attributes, "search-attribute", "Name=Type that the namespace must have (repeatable)")
	f.DurationVar(&o.retention, "retention", 72*time.Hour, "how long closed workflows stay, for a namespace that is new; at least 1h")
	f.StringVar(&o.logLevel, "log-level", "error", "debug, info, warn or error; the log goes to standard error")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.retention < time.Hour {
		return o, fmt.Errorf("--retention is %s, the server wants at least 1h", o.retention)
	}
	return o, nil
}

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = run(ctx, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "temporal:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. It writes one line "ready <addr>" to out as soon
// as workflows can be started.
func run(ctx context.Context, o options, out io.Writer) error {
	s, err := newServer(o)
	if err != nil {
		return err
	}
	if err := s.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	if err := awaitNamespace(ctx, o); err != nil {
		return stopWith(s, err)
	}
	if o.uiPort != 0 {
		ui := newUI(o)
		defer ui.Stop()
		if err := awaitPort(ctx, o.ip, o.uiPort); err != nil {
			return stopWith(s, fmt.Errorf("start the UI: %w", err))
		}
	}
	fmt.Fprintf(out, "ready %s\n", hostPort(o.ip, o.port))
	<-ctx.Done()
	return s.Stop()
}
