// Package twiliostub stands in for Twilio's Messages API on the loopback
// address: it keeps messages, tells status callbacks as Twilio signs them, and
// fails on demand. Tests and `make dev TWILIO=stub` use it through the real
// twilio-go client.
package twiliostub

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Message is one message that the stand-in has taken.
type Message struct {
	SID              string
	To               string
	From             string
	MessagingService string
	Body             string
	Validity         int // seconds; 0 when it was not given
	StatusCallback   string
	Status           string
	ErrorCode        int // of an undelivered or failed one
	CreatedAt        time.Time
	SentAt           time.Time // zero until it is sent
}

// Request is one call of the API.
type Request struct {
	At     time.Time
	Method string
	Path   string // without the query
	Form   url.Values
	Status int // of the answer; 0 when it was dropped
}

// Options say how a stand-in behaves. The zero value takes any credentials of
// the account named in the path and leaves every message as it was made.
type Options struct {
	Addr       string // host:port; "" is a free port of 127.0.0.1
	AccountSID string // the only one taken; "" takes any
	AuthToken  string // its token, which also signs; "" takes any and signs with "token"
	// Follow lists the states that every message goes through by itself, each
	// after Pace.
	Follow []string
	Pace   time.Duration
	// OnMessage is told of each message that is taken, in order.
	OnMessage func(Message)
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Server is the stand-in. All methods are safe for concurrent use.
type Server struct {
	URL  string
	opts Options

	http       *http.Server
	client     *http.Client
	background sync.WaitGroup
	closing    chan struct{}

	mu        sync.Mutex
	messages  []*Message // oldest first
	requests  []*Request
	faults    []*Fault
	down      *Fault         // of every call without a fault of its own
	refused   map[string]int // number → code
	perSecond int
	busy      time.Time
	taken     []time.Time // of the creates within the last second
}

// Start starts a stand-in.
func Start(opts Options) (*Server, error) {
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	l, err := net.Listen("tcp", opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("stand-in of Twilio: %w", err)
	}
	s := &Server{
		URL: "http://" + l.Addr().String(), opts: opts, closing: make(chan struct{}), refused: map[string]int{},
		client: &http.Client{Timeout: 15 * time.Second}, // as long as Twilio waits for a webhook
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second}
	s.background.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // the listener is ours alone
		}
	})
	return s, nil
}

// Close ends it: open calls are cut, and messages go no further.
func (s *Server) Close() error {
	close(s.closing)
	err := s.http.Close()
	s.background.Wait()
	s.client.CloseIdleConnections()
	return err
}

// Messages are all messages, oldest first.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Message, len(s.messages))
	for i, m := range s.messages {
		list[i] = *m
	}
	return list
}

// MessagesTo are those to one number, oldest first.
func (s *Server) MessagesTo(number string) []Message {
	var list []Message
	for _, m := range s.Messages() {
		if m.To == number {
			list = append(list, m)
		}
	}
	return list
}

// Requests are all calls so far, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Request, len(s.requests))
	for i, r := range s.requests {
		list[i] = *r
	}
	return list
}

// Calls are the requests as "METHOD status", oldest first.
func (s *Server) Calls() []string {
	var list []string
	for _, r := range s.Requests() {
		list = append(list, fmt.Sprintf("%s %d", r.Method, r.Status))
	}
	return list
}

const (
	apiRoot  = "/2010-04-01/Accounts/"
	messages = "/Messages"
)

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	seen := s.record(r)
	fault := s.fault(r)
	if fault != nil && fault.Before != nil {
		fault.Before()
	}
	var a answer
	switch {
	case fault != nil && !fault.Kept:
		a = fault.answer()
	default:
		a = s.answer(r)
		if fault != nil && a.status < 400 {
			a = fault.answer()
		}
	}
	if fault != nil && fault.Hang {
		select { // the client gives up first
		case <-r.Context().Done():
		case <-s.closing:
		}
		return
	}
	if fault != nil && fault.Drop {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			conn.Close()
		}
		return
	}
	s.mu.Lock()
	seen.Status = a.status
	s.mu.Unlock()
	a.write(w)
}

func (s *Server) record(r *http.Request) *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := &Request{At: s.opts.Now(), Method: r.Method, Path: r.URL.Path, Form: r.Form}
	s.requests = append(s.requests, seen)
	return seen
}

// answer carries a call out.
func (s *Server) answer(r *http.Request) answer {
	account, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, apiRoot), "/")
	if !strings.HasPrefix(r.URL.Path, apiRoot) || !ok {
		return refusal(http.StatusNotFound, 20404, "no such resource")
	}
	if !s.knows(r, account) {
		return refusal(http.StatusUnauthorized, 20003, "authentication failed")
	}
	id, named := strings.CutPrefix("/"+rest, messages+"/")
	switch {
	case r.Method == http.MethodPost && "/"+rest == messages+".json":
		return s.create(account, r.PostForm)
	case r.Method == http.MethodGet && "/"+rest == messages+".json":
		return s.list(account, r)
	case r.Method == http.MethodGet && named && strings.HasSuffix(id, ".json"):
		return s.fetch(account, strings.TrimSuffix(id, ".json"))
	}
	return refusal(http.StatusNotFound, 20404, "no such resource")
}

func (s *Server) knows(r *http.Request, account string) bool {
	user, password, ok := r.BasicAuth()
	return ok && user == account &&
		(s.opts.AccountSID == "" || user == s.opts.AccountSID) &&
		(s.opts.AuthToken == "" || password == s.opts.AuthToken)
}

func newSID(prefix string) string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return prefix + hex.EncodeToString(raw[:])
}
