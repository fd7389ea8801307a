// Package stripetest is Stripe for tests: Stripe's stateless mock, and a small
// stand-in that remembers payments, refunds and idempotency keys, and fails on
// demand.
package stripetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Object is an object of Stripe's API.
type Object = map[string]any

// Server is the stand-in. All methods are safe for concurrent use.
type Server struct {
	URL string
	Key string // the only one it takes

	srv      *httptest.Server
	mu       sync.Mutex
	n        int // of the last id
	intents  map[string]Object
	charges  map[string]Object
	sessions map[string]Object
	refunds  map[string]Object
	order    []string // of refunds, oldest first
	status   string   // of new refunds
	kept     map[string]answer
	faults   []*Fault
	calls    []string
}

// Fault happens at the next call that On begins ("POST /v1/refunds").
type Fault struct {
	On     string
	Before func() // runs first: what happens between two calls of somebody
	// Status is answered in place of the true answer; 0 with Drop unset lets
	// the call pass.
	Status int
	Code   string
	Drop   bool // no answer at all
	Done   bool // the call is carried out all the same
	Kept   bool // the answer is kept under the idempotency key, as Stripe does with its own 500
	Body   string
}

type answer struct {
	request string // its id
	params  string
	status  int
	body    []byte
}

// New starts a stand-in.
func New() *Server {
	s := &Server{
		Key: "sk_test_of-the-stand-in", status: "succeeded",
		intents: map[string]Object{}, charges: map[string]Object{}, sessions: map[string]Object{},
		refunds: map[string]Object{}, kept: map[string]answer{},
	}
	s.srv = httptest.NewServer(s)
	s.URL = s.srv.URL
	return s
}

// Close ends it.
func (s *Server) Close() { s.srv.Close() }

// Next adds faults; each happens once.
func (s *Server) Next(faults ...*Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Calls are the calls so far as "METHOD /path".
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

// Keys are the idempotency keys under which something was done, sorted.
func (s *Server) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.kept))
}

func (s *Server) fault(call string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	for i, f := range s.faults {
		if strings.HasPrefix(call, f.On) {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			return f
		}
	}
	return nil
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := s.fault(r.Method + " " + r.URL.Path)
	if f != nil && f.Before != nil {
		f.Before()
	}
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+s.Key {
		a := answer{}
		a.become(http.StatusUnauthorized, failure("invalid_request_error", "", "Invalid API Key provided: "+r.Header.Get("Authorization")))
		a.write(w)
		return
	}
	s.mu.Lock()
	a, replayed := s.answer(r, f)
	s.mu.Unlock()
	switch {
	case f != nil && f.Drop:
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			conn.Close()
		}
		return
	case f != nil && f.Body != "":
		w.WriteHeader(f.Status)
		fmt.Fprint(w, f.Body)
		return
	}
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
		w.Header().Set("Original-Request", a.request)
	}
	a.write(w)
}

// answer carries a call out, at most once for an idempotency key.
func (s *Server) answer(r *http.Request, f *Fault) (a answer, replayed bool) {
	post, key := r.Method == http.MethodPost, r.Header.Get("Idempotency-Key")
	a = answer{request: s.id("req"), params: r.URL.Path + "?" + r.Form.Encode()}
	if old, ok := s.kept[key]; ok && post {
		if old.params == a.params {
			return old, true
		}
		a.become(http.StatusBadRequest, failure("idempotency_error", "", "Keys for idempotent requests can only be used with the same parameters"))
		return a, false
	}
	if f == nil || f.Done || f.Status == 0 && !f.Drop {
		a.become(s.carryOut(r.Method, strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/"), r.Form))
		if post {
			s.kept[key] = a
		}
	}
	if f != nil && f.Status != 0 {
		a.become(f.Status, failure("api_error", f.Code, "a fault of the test"))
		if f.Kept {
			s.kept[key] = a
		}
	}
	return a, false
}

// become writes the body at once: the objects in it go on changing.
func (a *answer) become(status int, body Object) {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	a.status, a.body = status, raw
}

func (s *Server) carryOut(method string, path []string, form url.Values) (int, Object) {
	what := method + " " + path[0]
	if path[0] == "checkout" && len(path) > 1 {
		what, path = method+" "+path[1], path[1:]
	}
	id, verb := "", ""
	if len(path) > 1 {
		id = path[1]
	}
	if len(path) > 2 {
		verb = path[2]
	}
	switch {
	case what == "GET payment_intents":
		return s.one(s.intents, id, form)
	case what == "POST payment_intents" && verb == "cancel":
		return s.cancelIntent(id, form)
	case what == "GET sessions" && id == "":
		return s.list(s.sessions, nil, form)
	case what == "GET sessions":
		return s.one(s.sessions, id, form)
	case what == "POST sessions" && verb == "expire":
		return s.expireSession(id)
	case what == "GET refunds" && id == "":
		return s.list(s.refunds, s.order, form)
	case what == "GET refunds":
		return s.one(s.refunds, id, form)
	case what == "POST refunds":
		return s.refund(form)
	}
	return http.StatusNotFound, failure("invalid_request_error", "", "Unrecognized request URL: "+what)
}

func failure(kind, code, message string) Object {
	e := Object{"type": kind, "message": message}
	if code != "" {
		e["code"] = code
	}
	return Object{"error": e}
}

func missing(id string) (int, Object) {
	return http.StatusNotFound, failure("invalid_request_error", "resource_missing", "No such object: "+id)
}

func (a answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a client that has gone needs no answer
}

func (s *Server) id(prefix string) string {
	s.n++
	return fmt.Sprintf("%s_%d", prefix, s.n)
}
