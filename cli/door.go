package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"holdfast/config"
	"holdfast/contract"
)

const (
	defaultDoor = "http://127.0.0.1:8080"
	doorTimeout = 15 * time.Second // the door itself waits 2 s for a decision
	maxAnswer   = 1 << 20
)

// door is a client of a running door's HTTP API.
type door struct {
	base  string
	local bool // on this machine
	http  *http.Client
}

// newDoor reads from the environment where the door is.
func newDoor() (*door, error) {
	base, ok := os.LookupEnv("HOLDFAST_URL")
	if !ok {
		base = defaultDoor
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, usagef("HOLDFAST_URL is %q; it must be the http or https URL of a door, as in %s", base, defaultDoor)
	}
	ip := net.ParseIP(u.Hostname())
	return &door{
		base:  strings.TrimRight(base, "/"),
		local: u.Hostname() == "localhost" || ip != nil && ip.IsLoopback(),
		http:  &http.Client{Timeout: doorTimeout},
	}, nil
}

// secret reads from the environment how to be let in. The published secret of
// `make dev` is used only for a door on this machine.
func (d *door) secret(name, dev string) (string, error) {
	switch value, ok := os.LookupEnv(name); {
	case value != "":
		return value, nil
	case ok:
		return "", usagef("%s is set, but to nothing", name)
	case d.local:
		return dev, nil
	}
	return "", usagef("%s is not set; the secrets of `make dev` are used only for a door on this machine", name)
}

// passing is a failure that another attempt may not meet.
type passing struct{ error }

func (p passing) Unwrap() error { return p.error }

// answer is what the door said.
type answer struct {
	status int
	body   []byte
}

// ofSKU asks the door of the environment about a SKU; path is what follows the SKU's.
// With a body it is a POST.
func ofSKU(ctx context.Context, sku, path string, body any) (answer, error) {
	if !contract.ValidSKU(sku) {
		return answer{}, badSKU(sku)
	}
	d, err := newDoor()
	if err != nil {
		return answer{}, err
	}
	if path = "/v1/stock/" + sku + path; body == nil {
		return d.get(ctx, path)
	}
	return d.post(ctx, path, body)
}

// show prints what the door said, as it is or as print has it for a person.
func (a *app) show(got answer, asJSON bool, print func(w io.Writer) error) error {
	if asJSON {
		return indent(a.std.Out, got.body)
	}
	return print(a.std.Out)
}

func jsonFlag(cmd *cobra.Command, asJSON *bool) *cobra.Command {
	cmd.Flags().BoolVar(asJSON, "json", false, "print the door's answer as JSON")
	return cmd
}

func (d *door) get(ctx context.Context, path string) (answer, error) {
	return d.call(ctx, http.MethodGet, path, nil)
}

func (d *door) post(ctx context.Context, path string, payload any) (answer, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return answer{}, err
	}
	return d.call(ctx, http.MethodPost, path, bytes.NewReader(body))
}

// call sends a call of the shop's; body is JSON, or nil.
func (d *door) call(ctx context.Context, method, path string, body io.Reader) (answer, error) {
	return d.callWith(ctx, method, path, body, nil)
}

// callWith is call with headers of its own.
func (d *door) callWith(ctx context.Context, method, path string, body io.Reader, header http.Header) (answer, error) {
	key, err := d.secret("HOLDFAST_KEY", config.DevAPIKey)
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, method, d.base+path, body)
	if err != nil {
		return answer{}, err
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Authorization", "Bearer "+key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return d.do(req)
}

// webhook sends a signed Standard Webhooks message.
func (d *door) webhook(ctx context.Context, path, id string, payload any) (answer, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return answer{}, err
	}
	secret, err := d.secret("HOLDFAST_WEBHOOK_SECRET", config.DevWebhookSecret)
	if err != nil {
		return answer{}, err
	}
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return answer{}, usagef("HOLDFAST_WEBHOOK_SECRET is not whsec_ and base64")
	}
	now := time.Now()
	signature, err := hook.Sign(id, now, body)
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.base+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(standardwebhooks.HeaderWebhookID, id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, fmt.Sprint(now.Unix()))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return d.do(req)
}

// do sends req; every status but a 2xx is an error that says what the door said.
func (d *door) do(req *http.Request) (answer, error) {
	resp, err := d.http.Do(req)
	if err != nil {
		return answer{}, passing{fmt.Errorf("the door at %s does not answer: %w", d.base, err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return answer{}, passing{fmt.Errorf("the answer of the door at %s broke off: %w", d.base, err)}
	}
	if resp.StatusCode/100 != 2 {
		err := refusal(resp.Status, body)
		if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
			err = passing{err}
		}
		return answer{}, err
	}
	return answer{status: resp.StatusCode, body: body}, nil
}

// refusal makes an error of a problem document (RFC 9457).
func refusal(status string, body []byte) error {
	var p struct {
		Code   string `json:"code"`
		Title  string `json:"title"`
		Detail string `json:"detail"`
		Errors []struct {
			Pointer string `json:"pointer"`
			Detail  string `json:"detail"`
		} `json:"errors"`
	}
	text := "the door answered " + status
	if json.Unmarshal(body, &p) != nil {
		return errors.New(text)
	}
	for _, part := range []string{p.Code, p.Title, p.Detail} {
		if part != "" {
			text += ": " + part
		}
	}
	for _, e := range p.Errors {
		text += "\n  " + e.Pointer + ": " + e.Detail
	}
	return errors.New(text)
}
