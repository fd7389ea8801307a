package twiliostub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// States of a message, in Twilio's words.
const (
	Accepted    = "accepted"
	Queued      = "queued"
	Sending     = "sending"
	Sent        = "sent"
	Delivered   = "delivered"
	Undelivered = "undelivered"
	Failed      = "failed"
)

var (
	e164        = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)
	mostBody    = 1600 // UTF-16 units
	mostSeconds = 36000
)

// create makes a message, or refuses it as Twilio does.
func (s *Server) create(account string, form url.Values) answer {
	if wait := s.overRate(); wait > 0 {
		a := refusal(http.StatusTooManyRequests, 20429, "too many requests")
		a.retryAfter = wait
		return a
	}
	m := &Message{
		To: form.Get("To"), From: form.Get("From"), MessagingService: form.Get("MessagingServiceSid"),
		Body: form.Get("Body"), StatusCallback: form.Get("StatusCallback"), Status: Queued,
	}
	if a, bad := s.check(m, form); bad {
		return a
	}
	if m.MessagingService != "" {
		m.Status = Accepted // no sender has been chosen yet
	}
	s.mu.Lock()
	m.SID, m.CreatedAt = newSID("SM"), s.opts.Now()
	s.messages = append(s.messages, m)
	body, taken := s.resource(account, m), *m
	if s.opts.OnMessage != nil {
		s.opts.OnMessage(taken)
	}
	s.mu.Unlock()
	if len(s.opts.Follow) > 0 {
		s.background.Go(func() { s.follow(taken.SID) })
	}
	return reply(http.StatusCreated, body)
}

func (s *Server) check(m *Message, form url.Values) (answer, bool) {
	bad := func(code int, format string, args ...any) (answer, bool) {
		return refusal(http.StatusBadRequest, code, fmt.Sprintf(format, args...)), true
	}
	s.mu.Lock()
	code := s.refused[m.To]
	s.mu.Unlock()
	switch {
	case m.To == "":
		return bad(21604, "a 'To' number is needed")
	case !e164.MatchString(m.To):
		return bad(21211, "the 'To' number %s is not valid", m.To)
	case m.From == "" && m.MessagingService == "":
		return bad(21603, "a 'From' number is needed")
	case m.Body == "":
		return bad(21602, "a body is needed")
	case len(utf16.Encode([]rune(m.Body))) > mostBody:
		return bad(21617, "the body is longer than %d", mostBody)
	case code != 0:
		return bad(code, "the 'To' number %s cannot be texted", m.To)
	}
	if raw := form.Get("ValidityPeriod"); raw != "" {
		n, err := strconv.Atoi(raw)
		if err != nil || n < 1 || n > mostSeconds {
			return bad(20001, "ValidityPeriod %s is not 1 to %d", raw, mostSeconds)
		}
		m.Validity = n
	}
	if m.StatusCallback != "" {
		if u, err := url.Parse(m.StatusCallback); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return bad(21609, "the StatusCallback %s is not a URL", m.StatusCallback)
		}
	}
	return answer{}, false
}

func (s *Server) fetch(account, sid string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(sid); m != nil {
		return reply(http.StatusOK, s.resource(account, m))
	}
	return refusal(http.StatusNotFound, 20404, "no message "+sid)
}

// find needs the lock.
func (s *Server) find(sid string) *Message {
	for _, m := range s.messages {
		if m.SID == sid {
			return m
		}
	}
	return nil
}

// list answers a page of messages, newest first. A message that has not been
// sent has no time of sending, so no filter on it finds it.
func (s *Server) list(account string, r *http.Request) answer {
	q := r.URL.Query()
	size, page := number(q, "PageSize", 50), number(q, "Page", 0)
	if size < 1 || size > 1000 || page < 0 {
		return refusal(http.StatusBadRequest, 20001, "PageSize must be 1 to 1000, Page not negative")
	}
	inTime, err := timeFilter(q)
	if err != nil {
		return refusal(http.StatusBadRequest, 20001, err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []any{}
	for _, m := range slices.Backward(s.messages) {
		if matches(q, "To", m.To) && matches(q, "From", m.From) && inTime(m.SentAt) {
			found = append(found, s.resource(account, m))
		}
	}
	from, to := min(page*size, len(found)), min((page+1)*size, len(found))
	body := map[string]any{
		"page": page, "page_size": size, "start": from, "end": max(from, to-1), "uri": r.URL.RequestURI(),
		"messages": found[from:to], "next_page_uri": nil, "previous_page_uri": nil, "first_page_uri": pageURI(r, q, 0),
	}
	if to < len(found) {
		body["next_page_uri"] = pageURI(r, q, page+1)
	}
	return reply(http.StatusOK, body)
}

func pageURI(r *http.Request, q url.Values, page int) string {
	q.Set("Page", strconv.Itoa(page))
	return r.URL.Path + "?" + q.Encode()
}

func number(q url.Values, name string, otherwise int) int {
	if raw := q.Get(name); raw != "" {
		n, err := strconv.Atoi(raw)
		if err != nil {
			return -1
		}
		return n
	}
	return otherwise
}

func matches(q url.Values, name, is string) bool { return q.Get(name) == "" || q.Get(name) == is }

// timeFilter reads DateSent (a day), DateSent< and DateSent> (to the second when
// they name one), each in UTC.
func timeFilter(q url.Values) (func(sent time.Time) bool, error) {
	ok := func(time.Time) bool { return true }
	for _, name := range []string{"DateSent", "DateSent<", "DateSent>"} {
		raw := q.Get(name)
		if raw == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, raw)
		if err != nil {
			if at, err = time.Parse(time.DateOnly, raw); err != nil {
				return nil, fmt.Errorf("%s is %q, not a date", name, raw)
			}
		}
		before := ok
		ok = func(sent time.Time) bool {
			if sent.IsZero() || !before(sent) {
				return false
			}
			switch name {
			case "DateSent<":
				return !sent.After(at)
			case "DateSent>":
				return !sent.Before(at)
			}
			return sent.UTC().Format(time.DateOnly) == at.UTC().Format(time.DateOnly)
		}
	}
	return ok, nil
}

// resource is a message as the API shows it; it needs the lock.
func (s *Server) resource(account string, m *Message) map[string]any {
	r := map[string]any{
		"account_sid": account, "api_version": "2010-04-01", "body": m.Body, "direction": "outbound-api",
		"date_created": stamp(m.CreatedAt), "date_updated": stamp(s.opts.Now()), "date_sent": stamp(m.SentAt),
		"from": orNull(m.From), "to": m.To, "messaging_service_sid": orNull(m.MessagingService),
		"sid": m.SID, "status": m.Status, "num_media": "0", "num_segments": "0", "price": nil, "price_unit": "USD",
		"error_code": nil, "error_message": nil, "uri": apiRoot + account + messages + "/" + m.SID + ".json",
	}
	if m.ErrorCode != 0 {
		r["error_code"] = m.ErrorCode
	}
	return r
}

func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC1123Z)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// answer is what a call is answered.
type answer struct {
	status      int
	contentType string
	retryAfter  time.Duration
	body        []byte
}

func reply(status int, body any) answer {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // maps of plain values
	}
	return answer{status: status, contentType: "application/json", body: raw}
}

func refusal(status, code int, message string) answer {
	return reply(status, map[string]any{
		"code": code, "message": message, "more_info": fmt.Sprintf("https://www.twilio.com/docs/errors/%d", code), "status": status,
	})
}

func (a answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", a.contentType)
	if a.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((a.retryAfter+time.Second-1)/time.Second)))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a client that has gone needs no answer
}

// Link is the first link in the body that contains part, "" when there is none.
func (m Message) Link(part string) string {
	for word := range strings.FieldsSeq(m.Body) {
		if strings.HasPrefix(word, "http") && strings.Contains(word, part) {
			return word
		}
	}
	return ""
}
