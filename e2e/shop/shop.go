// Package shop is a shop's server and its shoppers as plain HTTP clients of a
// door. The end-to-end stories and the demo speak through it. It knows only
// what stands in the HTTP contract and imports nothing of the product.
package shop

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Shop is a shop's server.
type Shop struct {
	URL    string // of the door, without a slash at its end
	Key    string // the bearer key
	Secret string // of the inventory webhook, "whsec_…"
	HTTP   *http.Client
}

// New returns a shop whose calls take at most 30 s. Its connections are its
// own.
func New(url, key, secret string) *Shop {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.MaxIdleConnsPerHost = 256
	transport.MaxIdleConns = 0
	return &Shop{URL: url, Key: key, Secret: secret, HTTP: &http.Client{
		Transport: transport,
		Timeout:   30 * time.Second,
		// A browser shows where it is led; a test wants to see it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// At is the same shop at another address.
func (s *Shop) At(url string) *Shop {
	out := *s
	out.URL = url
	return &out
}

// Answer is a complete answer of the door.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Problem is a problem document (RFC 9457).
type Problem struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail"`
	Code    string `json:"code"`
	JoinURL string `json:"join_url"`
	Waiting int64  `json:"waiting"`
	Errors  []struct {
		Pointer string `json:"pointer"`
		Detail  string `json:"detail"`
	} `json:"errors"`
	Refund *Refund `json:"refund"`
}

// Code is the problem's name, "" when the answer is no problem document.
func (a Answer) Code() string { return a.Problem().Code }

// Problem reads the problem document; it is empty when there is none.
func (a Answer) Problem() Problem {
	var p Problem
	if mediaType(a.Header) != "application/problem+json" || json.Unmarshal(a.Body, &p) != nil {
		return Problem{}
	}
	return p
}

func (a Answer) String() string { return fmt.Sprintf("%d %s", a.Status, bytes.TrimSpace(a.Body)) }

func mediaType(h http.Header) string {
	t, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.TrimSpace(t)
}

// Call makes one request with a JSON body (nil: none; []byte: as it is) and the
// shop's key. Header pairs come last and win; an empty value takes one away.
func (s *Shop) Call(ctx context.Context, method, path string, body any, header ...string) (Answer, error) {
	var raw []byte
	switch b := body.(type) {
	case nil:
	case []byte:
		raw = b
	default:
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return Answer{}, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader(raw))
	if err != nil {
		return Answer{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+s.Key)
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i+1] == "" {
			req.Header.Del(header[i])
		}
	}
	return s.do(req)
}

func (s *Shop) do(req *http.Request) (Answer, error) {
	res, err := s.HTTP.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	out := Answer{Status: res.StatusCode, Header: res.Header}
	// An answer counts only when it came whole.
	if out.Body, err = io.ReadAll(res.Body); err != nil {
		return Answer{}, fmt.Errorf("%s %s broke off: %w", req.Method, req.URL, err)
	}
	return out, nil
}

// Into makes the call and reads a 2xx answer into out; any other answer is an
// error that quotes it.
func (s *Shop) into(ctx context.Context, out any, method, path string, body any, header ...string) error {
	a, err := s.Call(ctx, method, path, body, header...)
	if err != nil {
		return err
	}
	if a.Status < 200 || a.Status > 299 {
		return fmt.Errorf("%s %s: %s", method, path, a)
	}
	if out == nil || len(a.Body) == 0 {
		return nil
	}
	if err := json.Unmarshal(a.Body, out); err != nil {
		return fmt.Errorf("%s %s: %w in %s", method, path, err, a)
	}
	return nil
}

// Token is a fresh random text for keys, references and event ids.
func Token() string { return strings.ToLower(rand.Text()) }

// Sign returns the Standard Webhooks headers of a body at an instant.
func Sign(secret, id string, at time.Time, body []byte) []string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		key = []byte(secret) // a wrong secret signs wrongly, which a test may want
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	return []string{
		"webhook-id", id,
		"webhook-timestamp", stamp,
		"webhook-signature", "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)),
		"Authorization", "",
	}
}
