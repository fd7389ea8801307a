package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"holdfast/dev/stack"
)

const (
	// openPatience is how long a gate that checks itself after a restart may
	// take to open.
	openPatience = 60 * time.Second
	openPause    = 500 * time.Millisecond
	checkoutURL  = "https://shop.example/checkout?hold={hold_id}&until={expires_at}&sig={sig}"
)

// awaitGate waits until the gate is open for all SKUs. After a start on old
// state it is first checked against Temporal; slow is called when that takes
// more than a moment.
func awaitGate(ctx context.Context, url string, slow func()) error {
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	for try := 0; ; try++ {
		gate, err := readGate(ctx, url)
		if err == nil && gate == "open" {
			return nil
		}
		if try == 3 {
			slow()
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return err
			}
			return fmt.Errorf("it is %s after %s; see %s/readyz", gate, openPatience, url)
		case <-time.After(openPause):
		}
	}
}

// readGate is the gate's state as the door sees it, whatever it answers.
func readGate(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var ready struct {
		Gate string `json:"gate"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&ready); err != nil {
		return "", fmt.Errorf("the answer of %s/readyz cannot be read: %w", url, err)
	}
	return ready.Gate, nil
}

// openGoods makes CHAIR, with no unit, and TEE, with 100. The event id of the
// 100 is fixed: they come once, however often the stack starts.
func openGoods(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	for _, good := range []struct{ sku, title string }{{"CHAIR", "Oak Chair"}, {"TEE", "Festival Tee"}} {
		body := map[string]any{"title": good.title, "checkout_url": checkoutURL}
		if err := call(ctx, http.MethodPut, url+"/v1/stock/"+good.sku, body, bearer); err != nil {
			return fmt.Errorf("open %s: %w", good.sku, err)
		}
	}
	const id = "dev-first-100-tees"
	event := map[string]any{"event_id": id, "sku": "TEE", "kind": "restock", "units": 100, "actor": "make dev"}
	if err := call(ctx, http.MethodPost, url+"/v1/webhooks/inventory", event, signed(id)); err != nil {
		return fmt.Errorf("restock TEE: %w", err)
	}
	return nil
}

func bearer(h http.Header, _ []byte) error {
	h.Set("Authorization", "Bearer "+stack.APIKey)
	return nil
}

func signed(id string) func(http.Header, []byte) error {
	return func(h http.Header, body []byte) error {
		hook, err := standardwebhooks.NewWebhook(stack.InventorySecret)
		if err != nil {
			return err
		}
		now := time.Now()
		signature, err := hook.Sign(id, now, body)
		if err != nil {
			return err
		}
		h.Set(standardwebhooks.HeaderWebhookID, id)
		h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
		h.Set(standardwebhooks.HeaderWebhookSignature, signature)
		return nil
	}
}

// call sends content and repeats it while the door is not available.
func call(ctx context.Context, method, url string, content any, authorize func(http.Header, []byte) error) error {
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	for {
		again, err := callOnce(ctx, method, url, body, authorize)
		if err == nil || !again {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(openPause):
		}
	}
}

// callOnce sends body once. again says that a failure may go well later.
func callOnce(ctx context.Context, method, url string, body []byte, authorize func(http.Header, []byte) error) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	if err := authorize(req.Header, body); err != nil {
		return false, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return true, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 300 {
		return false, nil
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 1000)) // only to show it
	return resp.StatusCode >= 500, fmt.Errorf("the door answers %s: %s", resp.Status, said)
}
