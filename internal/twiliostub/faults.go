package twiliostub

import (
	"net/http"
	"strings"
	"time"
)

// Calls that a fault can be for.
const (
	Create = "create"
	List   = "list"
	Fetch  = "fetch"
)

// Fault happens once, at the next call that it is for.
type Fault struct {
	On string // Create, List or Fetch; "" is any
	To string // only for calls that name this number; "" is any

	Before func() // runs first: what happens between two calls of somebody
	// Kept carries the call out all the same: only its answer is another one.
	Kept bool
	// Drop closes the connection without an answer, Hang never answers.
	Drop, Hang bool

	Status     int // of the answer otherwise
	Code       int // Twilio's
	RetryAfter time.Duration
	// Body, when not empty, is answered as it is: what a proxy may say.
	Body string
}

// Next adds faults; each happens once, the first that is for a call first.
func (s *Server) Next(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		s.faults = append(s.faults, &f)
	}
}

// Refuse refuses every message to a number with a code, until the code is 0.
func (s *Server) Refuse(number string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[number] = code
}

// Down answers every call with a status and a code, as an account does that is
// closed, until the status is 0.
func (s *Server) Down(status, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = nil
	if status != 0 {
		s.down = &Fault{Status: status, Code: code}
	}
}

// Limit takes n messages within any second and answers the others 429, with
// Retry-After; 0 takes all.
func (s *Server) Limit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.perSecond = n
}

// Busy takes no message until an instant and answers 429 with the time until then.
func (s *Server) Busy(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = until
}

// overRate says how long a message must wait; 0 takes it.
func (s *Server) overRate() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	if wait := s.busy.Sub(now); wait > 0 {
		return wait
	}
	if s.perSecond == 0 {
		return 0
	}
	for len(s.taken) > 0 && now.Sub(s.taken[0]) >= time.Second {
		s.taken = s.taken[1:]
	}
	if len(s.taken) >= s.perSecond {
		return time.Second - now.Sub(s.taken[0])
	}
	s.taken = append(s.taken, now)
	return 0
}

func (s *Server) fault(r *http.Request) *Fault {
	on := Create
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, messages+".json"):
		on = List
	case r.Method == http.MethodGet:
		on = Fetch
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if (f.On == "" || f.On == on) && (f.To == "" || f.To == r.Form.Get("To")) {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			return f
		}
	}
	return s.down
}

func (f *Fault) answer() answer {
	if f.Body != "" {
		return answer{status: f.Status, contentType: "text/html", retryAfter: f.RetryAfter, body: []byte(f.Body)}
	}
	a := refusal(f.Status, f.Code, "a fault of the test")
	a.retryAfter = f.RetryAfter
	return a
}
